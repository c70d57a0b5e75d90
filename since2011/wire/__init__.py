"""Bytes and values of today's protocol. Pure: nothing in here reads a clock, a file or a socket."""
