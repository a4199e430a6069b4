"""x"""
def explain_mistake(source, unexpected):
    from weft.errors import Diagnostic
    from weft.source import Span
    p=getattr(unexpected,'pos_in_stream',None) or 0
    return Diagnostic("syntax", str(unexpected), source, Span(max(p,0),max(p,0)))
