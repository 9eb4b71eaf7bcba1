"""Where pods come from: each source delivers all its pods, every time."""
