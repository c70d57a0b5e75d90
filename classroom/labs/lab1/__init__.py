"""Lab 1: message set and CRC."""
