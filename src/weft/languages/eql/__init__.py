"""EQL, the event query language of the Next CEP system."""
