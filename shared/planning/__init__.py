"""The provisioning decision: from a snapshot to a plan. Pure."""
