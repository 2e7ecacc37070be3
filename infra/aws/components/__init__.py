"""Building blocks of the stacks, one construct per file."""
