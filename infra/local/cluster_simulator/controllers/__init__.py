"""The controllers of kube-controller-manager and of the cloud."""
