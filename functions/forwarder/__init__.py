"""The only part that runs in the cluster: watches objects and publishes messages on the bus."""
