"""From the algebra to operators, and to the automata and tables they run on."""
