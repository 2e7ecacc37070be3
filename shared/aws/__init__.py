"""The only importer of boto3: adapters of the ports to AWS.

Each adapter takes a `session.Session`, from which it asks for clients when it first needs them,
and plain values. Errors of the SDK end in `errors.translated`.
"""
