"""A node drawn: a page that needs nothing but itself, and the view of a terminal."""
