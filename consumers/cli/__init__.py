"""The sub-commands of the consumers."""
