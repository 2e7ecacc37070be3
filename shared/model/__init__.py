"""Frozen values of the field: what every other room speaks in. Standard library only."""
