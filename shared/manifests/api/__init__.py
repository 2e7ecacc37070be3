"""Pydantic models of the custom resources: they validate documents and generate the CRDs."""
