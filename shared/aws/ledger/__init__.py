"""The ledger in DynamoDB."""
