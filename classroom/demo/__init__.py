"""`make demo`: the whole cluster on one machine, with a load at the end."""
