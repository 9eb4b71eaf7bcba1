"""The resource claims of pods: read from an API server, and prepared before containers start."""
