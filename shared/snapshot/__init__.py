"""Reads one cluster for one decision."""
