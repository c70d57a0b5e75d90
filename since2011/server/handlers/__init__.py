"""What the modern port does with each request: one function each.

A handler gets the broker and the call and returns the answer's body, or None when the client wants no answer. It may
wait; the connection keeps the order. Errors are codes in the answer. To offer another request, write its lines in
``since2011/wire/codec/tables.py``, its function here and its line in ``table``; a service brings its own.
"""
