"""Breaking the local world on purpose, and counting what it survives."""
