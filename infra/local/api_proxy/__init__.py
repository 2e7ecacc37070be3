"""A front for a foreign API server: our callers' tokens in, its own credentials out."""
