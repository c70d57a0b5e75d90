"""Lab 3: flush and visibility under power cuts."""
