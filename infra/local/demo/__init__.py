"""`dovetail demo` and `dovetail up`: the embedded world, and scenarios played in it."""
