"""Step's rates and parallelism (chapter 6): how many events reach each component, and how many tasks that takes."""
