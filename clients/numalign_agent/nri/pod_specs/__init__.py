"""Where the plugin learns the spec of a pod: a runtime does not tell it."""
