"""A simulated cluster: what runs around a Kubernetes API server, as plain HTTP clients of it."""
