"""Custom resources."""
