"""Findings about clusters and deployments, with the command that fixes each."""
