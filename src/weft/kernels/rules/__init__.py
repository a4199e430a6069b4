"""Rules: from the event that fires them back to what they look for."""
