"""State as pages of bytes, of which a snapshot has those that changed."""
