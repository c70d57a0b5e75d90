"""The requests of transactions, one file for each purpose: bytes to the coordinator's words and back."""
