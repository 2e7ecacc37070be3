"""What claims and volumes ask of nodes, and how many a node can attach."""
