"""Pending pods get capacity; nodes are consolidated and replaced."""
