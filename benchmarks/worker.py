"""One producer or consumer in a process of its own.

    python -m benchmarks.worker SYSTEM PORT HINT ROLE TOPIC BATCH N

Prints one line of JSON: the seconds it took and the CPU seconds it used meanwhile.
"""

from __future__ import annotations

import gc
import json
import sys
import time

from benchmarks.system import make_payloads
from benchmarks.systems import SYSTEMS


def main() -> None:
    name, port, hint, role, topic, batch, messages = sys.argv[1:]
    system = SYSTEMS[name](int(port), hint)
    payloads = make_payloads(int(messages)) if role == "produce" else []
    gc.collect()
    gc.freeze()
    cpu = time.process_time()
    if role == "produce":
        seconds = system.produce(topic, payloads, int(batch))
    else:
        seconds = getattr(system, role)(topic, int(messages))
    print(json.dumps({"seconds": seconds, "cpu_s": time.process_time() - cpu}))


if __name__ == "__main__":
    main()
