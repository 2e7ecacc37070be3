"""What objects may say: field tables, schemas and rules of custom resources."""
