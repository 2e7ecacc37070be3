"""Files of manifests as text: YAML within bounds, large JSON piece by piece."""
