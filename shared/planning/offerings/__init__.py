"""Which offerings each group of pending pods can use."""
