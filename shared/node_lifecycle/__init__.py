"""Node lifecycle."""
