"""Which preferences of pods a plan keeps, and what they cost."""
