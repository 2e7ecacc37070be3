"""Pods of one batch that must be near each other, decided for all at once."""
