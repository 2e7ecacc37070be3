"""Decodes Kubernetes documents, as the API writes them, to values of the model. No I/O."""
