"""The group coordinator: a pure state machine; requests in, answers out, time as an argument.

See docs/group-protocol.md. ``requests`` and ``results`` are its vocabulary, ``service`` its door.
"""
