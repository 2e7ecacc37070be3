"""Node templates."""
