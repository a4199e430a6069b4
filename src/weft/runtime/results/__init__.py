"""Results for users: matches with their events, in the types of the input.

`results.py` keeps the events that later matches may show, as rows of the input, and `typed.py` puts them into the
columns that `shaping.py` chose for the program and the input.
"""
