"""The only importer of `kubernetes`: its configuration, authentication and connection pool.

Documents are raw JSON; typed models cost seconds and hundreds of megabytes for 10,000 pods.
"""
