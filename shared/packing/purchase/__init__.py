"""Purchase."""
