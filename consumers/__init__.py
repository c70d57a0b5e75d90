"""Consumers: Algorithm 1 of §3.2, and beside it the group protocol that replaced it."""
