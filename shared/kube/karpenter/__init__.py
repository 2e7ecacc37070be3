"""Objects of a Karpenter v1 that has run in the cluster."""
