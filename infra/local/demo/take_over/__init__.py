"""A cluster as Karpenter v1 leaves it, and whose its nodes are."""
