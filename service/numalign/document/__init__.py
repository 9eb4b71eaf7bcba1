"""Reading documents (YAML, JSON) strictly: every problem with its path, nothing guessed."""
