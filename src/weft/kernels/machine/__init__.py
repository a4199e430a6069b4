"""Values with their kinds, and exact arithmetic on them."""
