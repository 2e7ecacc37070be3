"""The AWS half of Dovetail as a CDK application."""
