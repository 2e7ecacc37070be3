"""Nodes, from launch to termination."""
