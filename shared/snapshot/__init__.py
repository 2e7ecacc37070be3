"""One cluster, read for one decision."""
