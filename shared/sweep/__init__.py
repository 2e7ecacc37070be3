"""Finds each minute what events missed."""
