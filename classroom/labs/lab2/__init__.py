"""Lab 2: a log with segments and recovery."""
