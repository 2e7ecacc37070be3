"""One use case per module: gather through ports, decide purely, apply through ports."""
