"""A live program as a service: HTTP and WebSockets in, matches to subscribers, state that survives a kill."""
