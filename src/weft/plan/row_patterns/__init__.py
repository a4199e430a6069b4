"""Row patterns as programs: states, ordered transitions, and the conditions that rows must satisfy."""
