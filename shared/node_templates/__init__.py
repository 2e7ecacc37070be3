"""What Provisioners and AWSNodeTemplates find in EC2."""
