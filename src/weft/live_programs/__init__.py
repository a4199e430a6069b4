"""Running programs that change: events and queries in, matches to subscribers."""
