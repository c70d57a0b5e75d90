"""What the modern port does with each request: one function each, grouped by what they are about.

A handler gets the service and the call and returns the answer's body, or None when the client wants no answer. It may
wait; the connection keeps the order. Errors are codes in the answer. To offer another request, write its lines in
``codec/tables.py``, its function here and its line in ``table``.
"""
