"""One cluster, seen live: the page of `dovetail watch` and the table of `dovetail top`."""
