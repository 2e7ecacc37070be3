"""Who fits where: compatibility, classes of pods, topology, daemons. Pure."""
