"""Events on their way in: columns to codes, sources to one order."""
