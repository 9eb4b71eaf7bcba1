"""What has become of each pod: computed, kept, and told to whoever wants to know."""
