"""The group coordinator: a pure state machine; requests in, answers out, time as an argument.

Spec: modern-group-protocol §2-§8, §12. ``requests`` and ``results`` are its vocabulary, ``service`` its door.
"""
