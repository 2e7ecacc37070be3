"""Rules of scheduling that scheduler and kubelet share."""
