"""Assignors: who gets which partition, as pure functions found by name."""
