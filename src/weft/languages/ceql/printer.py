"""x"""
def to_source(node): return repr(node)
