"""Where each pod goes: existing nodes, planned nodes, new nodes."""
