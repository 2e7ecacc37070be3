"""Records of decisions: written, read, decided again."""
