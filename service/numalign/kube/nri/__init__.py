"""The Node Resource Interface of container runtimes, as plugins speak it."""
