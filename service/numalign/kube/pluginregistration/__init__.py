"""Generated messages of the plugin watcher's interface."""
