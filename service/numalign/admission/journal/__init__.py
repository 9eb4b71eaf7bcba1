"""The journal: what was decided on pods of late, kept bounded on disk, and how it is asked."""
