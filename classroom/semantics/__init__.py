"""At most once, at least once, exactly once: the same faults for all of them, and what was lost or repeated."""
