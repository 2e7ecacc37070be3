"""Parsers for files of manifests: YAML within bounds, large JSON piece by piece."""
