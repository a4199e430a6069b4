"""The engine of rules that define events from events: all rules as tables over one store of events."""
