"""What a program may take: budgets, what holds it to them, and events that are left out."""
