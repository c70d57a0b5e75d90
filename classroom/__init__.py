"""A room for teaching: what uses all the other packages and is used by none of them.

``observatory`` is the web page, ``demo`` the activity stream of ``make demo``, ``cluster`` the
local processes both run on.
"""
