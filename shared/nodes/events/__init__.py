"""Kubernetes Events and conditions."""
