"""Procedures that look for a cheap packing."""
