"""Records of decisions: written, read and replayed."""
