"""Results one can use: matches with the events that they are made of, in the types of the input."""
