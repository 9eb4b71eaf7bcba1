"""Generated messages of the core group."""
