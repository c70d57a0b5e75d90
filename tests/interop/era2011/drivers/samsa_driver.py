# samsa 0.3.11, low-level client (Python 2.7): `publish` and `read` as the others; `multi` uses MULTIPRODUCE and
# MULTIFETCH.
import json
import sys
import time

from samsa.client import Client
from samsa.handlers import ThreadingHandler

verb, host, port, topic = sys.argv[1:5]
client = Client(host, ThreadingHandler(), port=int(port))


def read(name, count):
    found, offset = [], 0
    while len(found) < count:
        for message in client.fetch(name, 0, offset, 307200):
            found.append(str(message.payload))
            offset = message.next_offset
        time.sleep(0.05)
    return found


if verb == "publish":
    client.produce(topic, 0, sys.argv[5:])
    read(topic, len(sys.argv[5:]))  # nothing acknowledges a produce: wait until it can be read
elif verb == "publish-magic-1":
    client.produce(topic, 0, sys.argv[5:], version=1)
    read(topic, len(sys.argv[5:]))
elif verb == "multi":
    names = [topic + "-a", topic + "-b"]
    client.multiproduce([(name, 0, sys.argv[5:]) for name in names])
    for name in names:
        read(name, len(sys.argv[5:]))
    replies = client.multifetch([(name, 0, 0, 307200) for name in names])
    print(json.dumps([[str(message.payload) for message in reply] for reply in replies]))
else:
    print(json.dumps(read(topic, int(sys.argv[5]))))
sys.stdout.flush()
client.disconnect()
