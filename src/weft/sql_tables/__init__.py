"""SQL over tables in this process: what a user gives as tables, the clauses in a query, and the text around them."""
