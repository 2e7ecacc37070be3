"""Wire formats: what happened, as it came in. A message wakes; it is never the truth."""
