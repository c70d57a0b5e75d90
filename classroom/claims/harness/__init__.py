"""What the claims share: processes that start quickly, load, faults, and meters that need no root."""
