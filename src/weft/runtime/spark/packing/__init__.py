"""Events of a chunk as sorted runs in bytes, one for each lane, as Spark shuffles them."""
