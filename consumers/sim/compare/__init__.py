"""One seeded scenario through four protocols, side by side."""
