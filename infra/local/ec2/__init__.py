"""EC2 as a state machine in memory: fleets, capacity, addresses and the life of instances.

Three faces show it: the HTTP endpoint (`infra.local.aws.ec2`), the in-memory cloud provider of unit
tests and the Region of the fault simulator. It has no thread, no socket and no clock of its own:
the time is asked from outside, and what is due is computed from it.
"""
