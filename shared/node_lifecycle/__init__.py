"""A node from registration to termination."""
