"""TESLA: rules that define events from events, in the two concrete syntaxes of T-Rex."""
