"""Operators of a whole plan: layer by layer in one matcher, or in several, one for each lane."""
