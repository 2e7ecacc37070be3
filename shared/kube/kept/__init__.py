"""Pods and nodes of a large cluster: of each only what is read of it."""
