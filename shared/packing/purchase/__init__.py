"""From packed nodes to launch groups and their options."""
