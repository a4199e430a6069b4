"""What is asked, whatever the language it is asked in: predicates, patterns, queries, and their meaning."""
