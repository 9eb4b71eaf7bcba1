"""What a service tells about itself: logs, metrics, traces."""
