"""Frozen domain values that all other packages use."""
