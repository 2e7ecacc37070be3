"""Pydantic models of the custom resources: what is read, and the source of their definitions."""
