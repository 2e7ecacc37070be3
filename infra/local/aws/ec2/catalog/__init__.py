"""What the embedded EC2 sells: instance types, images, prices."""
