"""Events and matches as columns, with their values and texts."""
