"""Who may go, and in what order. Pure."""
