"""Pictures for the documents, drawn from what numalign decides."""
