"""What keeps Dovetail from launching: pause, ceilings, runaways, EC2's refusals."""
