"""From a plan to machines: intents, fleets, slots, Nodes."""
