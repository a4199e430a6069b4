"""SQL with MATCH_RECOGNIZE: row patterns in the FROM of a query, and the text around them."""
