"""Tagged values, and exact arithmetic on them."""
