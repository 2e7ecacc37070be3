"""What keeps Dovetail from launching: pause, ceilings, runaways."""
