"""Finds each minute what messages missed."""
