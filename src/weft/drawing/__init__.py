"""Pictures for notebooks and documents: a program with its plan, matches with the events they are made of."""
