"""Wire formats of messages. A message triggers work; it is only a hint about a cluster's state."""
