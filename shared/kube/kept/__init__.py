"""Pods and nodes of a large cluster, kept between readings: of each only the fields in use."""
