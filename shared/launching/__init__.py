"""Launching."""
