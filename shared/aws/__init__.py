"""Adapters of the ports to AWS. The only importer of boto3.

Each adapter takes plain values and a `session.Session`, which creates clients when they are first
needed. `errors.translated` translates errors of the SDK.
"""
