"""The bench of attacks: what a broker promises, while something is done to it."""
