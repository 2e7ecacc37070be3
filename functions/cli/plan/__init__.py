"""A plan as a table, as JSON and as a picture."""
