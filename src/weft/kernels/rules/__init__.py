"""Rules: find the rules that an event may fire, and search back for the events that they need."""
