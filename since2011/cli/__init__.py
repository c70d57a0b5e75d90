"""Commands that need what is newer than the paper."""
