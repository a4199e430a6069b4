"""Arrays in kernels: borrowed without reference counts, grouped in array tables, grown, hashed, sorted."""
