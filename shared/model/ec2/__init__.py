"""Values of EC2: instance types, launches, quotas, errors."""
