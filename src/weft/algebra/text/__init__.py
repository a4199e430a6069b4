"""The algebra as indented text: one construct per line, operands below it."""
