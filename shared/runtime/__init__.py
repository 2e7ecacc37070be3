"""The composition root: the only place that knows which adapter implements which port."""
