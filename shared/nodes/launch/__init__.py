"""From a plan to instances: intents, fleets, slots."""
