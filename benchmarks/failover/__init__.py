"""Replication under faults: a cluster of three brokers is struck again and again, and a judge looks at what is left."""
