"""Plans for people: whole ones, and the parts in which kinds of operators say more of themselves."""
