"""`dovetail shadow`: what Dovetail would launch and remove beside the autoscaler that runs."""
