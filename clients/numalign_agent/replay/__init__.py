"""Players for `numalign replay`: recordings of what a node agent decides by itself."""
