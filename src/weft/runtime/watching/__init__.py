"""What passes and how it goes, counted: events and conditions, triggers and their time, what a user should be told."""
