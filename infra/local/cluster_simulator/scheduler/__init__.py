"""The scheduling queue, filters and scores of kube-scheduler."""
