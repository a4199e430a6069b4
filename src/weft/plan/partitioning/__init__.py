"""How the work of queries is shared out to lanes: one file for each strategy, `choice.py` decides between them."""
