"""The client of `weft serve`: deploy queries, publish events and subscribe to matches of a program elsewhere."""
