"""What becomes of an object on its way into the store."""
