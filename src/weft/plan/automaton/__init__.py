"""Regular patterns as complex event automata: construction, determinisation, conditions over several events."""
