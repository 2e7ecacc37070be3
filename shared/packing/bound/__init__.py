"""Lower bounds on the price of a packing."""
