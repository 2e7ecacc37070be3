"""What keeps Dovetail from launching: pause, ceilings, runaways, refusals of EC2."""
