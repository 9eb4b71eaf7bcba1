"""What has happened to containers, found by looking at the runtime again and again (PLEG)."""
