"""Kubernetes documents as the API writes them, turned into the values of the model. No I/O."""
