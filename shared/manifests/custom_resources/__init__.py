"""Provisioners and AWSNodeTemplates, read and validated."""
