"""Lab 5: registries, ephemeral nodes and watches."""
