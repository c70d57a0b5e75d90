# The compiled twin of pure.py: same names, same signatures.
from kafka2011.wire.pure import VERSION as VERSION
from kafka2011.wire.pure import Hand as Hand
from kafka2011.wire.pure import Row as Row
from kafka2011.wire.pure import check as check
from kafka2011.wire.pure import cut as cut
from kafka2011.wire.pure import encode as encode
from kafka2011.wire.pure import split as split
