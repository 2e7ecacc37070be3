"""Kubelet."""
