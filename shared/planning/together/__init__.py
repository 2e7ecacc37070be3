"""Pods of one batch that must be near each other, placed all at once."""
