"""Which nodes may be disrupted, and in what order. Pure functions."""
