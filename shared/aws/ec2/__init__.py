"""The adapter to EC2: instances, images, instance types, prices."""
