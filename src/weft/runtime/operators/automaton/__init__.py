"""Regular queries at work: each an automaton over classified events."""
