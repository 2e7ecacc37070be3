"""The adapter to EC2: machines, images, instance types, prices."""
