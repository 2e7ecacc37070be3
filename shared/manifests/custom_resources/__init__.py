"""Reads and validates Provisioners, NodePools, AWSNodeTemplates and EC2NodeClasses."""
