"""Bound."""
