"""Adapters for API servers. The only importer of `kubernetes`, which reads kubeconfig files.

Documents are raw JSON; typed models cost seconds and hundreds of megabytes for 10,000 pods.
"""
