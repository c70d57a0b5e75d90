"""Lab 4: a fetch server with sendfile."""
