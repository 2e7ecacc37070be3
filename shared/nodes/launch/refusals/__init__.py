"""What EC2 or the cluster refused, and what follows from it."""
