"""Topology spread and affinity between pods."""
