"""A node that leaves: emptiness, expiration, replacement, interruption, termination."""
