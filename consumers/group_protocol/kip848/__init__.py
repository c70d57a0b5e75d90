"""KIP-848: one heartbeat instead of join and sync, and the broker computes the assignment."""
