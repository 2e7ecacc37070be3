"""What claims and volumes require of nodes, and how many volumes a node can attach."""
