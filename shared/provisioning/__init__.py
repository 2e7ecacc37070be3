"""Provides capacity for pending pods; consolidates and replaces nodes."""
