"""From a launched instance to a node that runs pods."""
