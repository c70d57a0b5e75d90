"""ActiveMQ, the other system the paper compares with: a persistent queue in KahaDB without disk syncs, as there.

The driver speaks STOMP with frames encoded in advance.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from benchmarks.system import Cell, Stopwatch, System, chunks, count_markers, free_port

_HOME = Path("/usr/share/activemq")
_CONFIG = """<beans xmlns="http://www.springframework.org/schema/beans"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://www.springframework.org/schema/beans http://www.springframework.org/schema/beans/spring-beans.xsd
  http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="bench" dataDirectory="{data}" useJmx="false">
    <persistenceAdapter>
      <kahaDB directory="{data}/kahadb" journalDiskSyncStrategy="never"/>
    </persistenceAdapter>
    <transportConnectors>
      <transportConnector name="stomp" uri="stomp+nio://127.0.0.1:{port}"/>
    </transportConnectors>
  </broker>
</beans>
"""


class ActiveMQ(System):
    name = "ActiveMQ"
    note = "persistent messages in KahaDB without disk syncs (as in the paper); pre-encoded STOMP; consumer acks auto"

    def missing(self) -> str | None:
        if not (_HOME / "bin" / "activemq.jar").exists():
            return "activemq is not installed"
        return None if shutil.which("java") else "there is no Java for activemq"

    def cells(self, scale: float) -> list[Cell]:
        n = int(10_000 * scale)
        return [Cell("produce", 1, n), Cell("consume", 0, n)]

    def start(self, directory: Path) -> None:
        self.port = free_port()
        (directory / "conf").mkdir()
        config = directory / "conf" / "activemq.xml"
        config.write_text(_CONFIG.format(data=directory / "data", port=self.port))
        properties = {"home": _HOME, "base": directory, "conf": directory / "conf", "data": directory / "data"}
        flags = [f"-Dactivemq.{name}={value}" for name, value in properties.items()]
        jar = str(_HOME / "bin" / "activemq.jar")
        self.spawn(["java", "-Xmx1g", *flags, "-jar", jar, "start", f"xbean:file:{config}"], directory)
        self.wait_for_port(directory)

    def produce(self, topic: str, payloads: Sequence[bytes], batch: int) -> float:
        head = b"SEND\ndestination:/queue/%s\npersistent:true\ncontent-length:%d\n" % (topic.encode(), len(payloads[0]))
        parts = [head + b"\n" + payload + b"\0\n" for payload in payloads]
        parts[-1] = head + b"receipt:last\n\n" + payloads[-1] + b"\0\n"
        with self._open() as connection:
            watch = Stopwatch()
            for data in chunks(parts):
                connection.sendall(data)
            answer = b""
            while b"receipt-id:last" not in answer:
                more = connection.recv(1 << 16)
                if not more or b"ERROR" in more:
                    raise RuntimeError(f"ActiveMQ refused: {more!r:.300}")
                answer += more
            return watch.seconds()

    def consume(self, topic: str, messages: int) -> float:
        with self._open() as connection:
            watch = Stopwatch()
            subscribe = b"SUBSCRIBE\nid:1\nack:auto\nactivemq.prefetchSize:10000\ndestination:/queue/%s\n\n\0\n"
            connection.sendall(subscribe % topic.encode())
            count_markers(lambda: connection.recv(1 << 20), messages)
        return watch.seconds()

    def _open(self) -> socket.socket:
        connection = self.connect()
        connection.sendall(b"CONNECT\naccept-version:1.1\nhost:localhost\nheart-beat:0,0\n\n\0\n")
        answer = b""
        while b"\0" not in answer:
            answer += connection.recv(1 << 16)
        if not answer.startswith(b"CONNECTED"):
            raise RuntimeError(f"ActiveMQ refused: {answer!r:.300}")
        return connection
