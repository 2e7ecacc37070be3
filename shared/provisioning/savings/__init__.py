"""What a running cluster costs, and what the same pods could cost."""
