"""Offerings."""
