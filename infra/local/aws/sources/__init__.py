"""Event source mappings: from SQS queues to functions, in batches."""
