"""Content filters: conditions on the fields of composite events, as subscriptions have them."""
