"""Which pods fit which nodes: labels and taints, pod classes, topology, DaemonSets. Pure."""
