"""Lab 6: Algorithm 1, until the simulator cannot break it."""
