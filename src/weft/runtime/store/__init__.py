"""What is kept while events pass: buffers of events, and state as pages that a snapshot saves."""
