"""Events and matches as columns, and the values and texts they are made of."""
