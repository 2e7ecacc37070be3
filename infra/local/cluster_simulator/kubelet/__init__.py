"""What a node does: registration, admission, status, running pods."""
