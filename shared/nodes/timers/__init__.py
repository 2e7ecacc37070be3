"""Starts timers, each under a name that is used once."""
