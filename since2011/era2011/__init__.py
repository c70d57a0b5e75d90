"""Topics of 2011 on the modern port (design D10): one log, two eras.

A record's offset is the position of the message's last byte, so "offset + 1" is the 2011 next offset.
"""
