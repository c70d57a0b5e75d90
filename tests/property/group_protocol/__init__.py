"""The group protocol."""
