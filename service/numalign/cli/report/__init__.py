"""A page about a node that needs nothing but itself: an SVG of the machine, tables, refusals."""
