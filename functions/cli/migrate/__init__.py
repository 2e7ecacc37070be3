"""Taking nodes over from a Karpenter v1 that has run in the cluster, and handing them back."""
