"""CloudFormation: resource types moto lacks, deployment, and the check that all of it exists."""
