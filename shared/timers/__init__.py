"""Starts timers, each under a name that is taken once."""
