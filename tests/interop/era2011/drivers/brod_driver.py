# brod 0.4.3 (Python 2.7): `publish HOST PORT TOPIC message...` or `read HOST PORT TOPIC count`, a JSON list.
import json
import sys
import time

import brod

verb, host, port, topic = sys.argv[1:5]
kafka = brod.Kafka(host, int(port))
if verb == "publish":
    kafka.produce(topic, sys.argv[5:], 0)
elif verb == "offsets":
    print(json.dumps([list(kafka.offsets(topic, when, 10, 0)) for when in (-1, -2)]))
else:
    found, offset = [], 0
    while len(found) < int(sys.argv[5]):
        for offset_of, message in kafka.fetch(topic, offset, 0):
            found.append(message)
            offset = offset_of + len(message) + 9
        time.sleep(0.05)
    print(json.dumps(found))
