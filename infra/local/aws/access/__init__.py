"""Who calls the embedded AWS: keys, signatures, identities, permissions."""
