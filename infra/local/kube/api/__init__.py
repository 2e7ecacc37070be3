"""What clients ask of the API server: verbs, watches, subresources, discovery."""
