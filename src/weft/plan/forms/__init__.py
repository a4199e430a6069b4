"""Other forms of running queries, by measured rates: `replanning.py` judges them, execution applies what it says."""
