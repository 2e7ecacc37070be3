"""Resolves the selectors of Provisioners and NodePools, and writes the status of templates."""
