"""How kernels hold arrays: without counting references, many as one, hashed."""
