"""Remote stores as real servers on loopback: S3 by moto, HDFS by its own name node and data node."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hadoop_etl.errors import WarehouseError
from hadoop_etl.storage import write_text
from kafka2011.child import die_with_parent
from tests.integration.etl.snippets import REPOSITORY
from tests.waiting import until
from zk_registry.java import find_java

HADOOP_JAR = "KAFKA2011_HADOOP_JAR"
"""Names hadoop-client-minicluster-3.5.0.jar, which holds the servers; the rest of Hadoop is inside pyspark."""

S3_KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}

_SITE = """<configuration>
<property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:{port}</value></property>
<property><name>hadoop.tmp.dir</name><value>{data}</value></property>
<property><name>dfs.replication</name><value>1</value></property>
<property><name>dfs.permissions.enabled</name><value>false</value></property>
<property><name>dfs.namenode.datanode.registration.ip-hostname-check</name><value>false</value></property>
<property><name>dfs.namenode.http-address</name><value>127.0.0.1:0</value></property>
<property><name>dfs.datanode.hostname</name><value>127.0.0.1</value></property>
<property><name>dfs.datanode.address</name><value>127.0.0.1:0</value></property>
<property><name>dfs.datanode.ipc.address</name><value>127.0.0.1:0</value></property>
<property><name>dfs.datanode.http.address</name><value>127.0.0.1:0</value></property>
</configuration>"""


def serve_s3() -> None:
    """Moto on a free port, which is printed. One request at a time: its conditional put is not atomic by itself."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    application, turn = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def one_at_a_time(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with turn:
            return list(application(environ, start_response))

    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=MotoRequestHandler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


@contextmanager
def s3(place: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A bucket, and the environment that leads to it."""
    with open(place / "s3.log", "wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=log,
            preexec_fn=die_with_parent,
        )
    try:
        assert server.stdout is not None
        address = f"http://127.0.0.1:{int(server.stdout.readline())}"
        urllib.request.urlopen(urllib.request.Request(f"{address}/lake", method="PUT"), timeout=60).close()
        yield "s3://lake", S3_KEYS | {"AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true"}
    finally:
        server.kill()
        server.wait()


@contextmanager
def hdfs(place: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A name node and a data node; no environment is needed."""
    import pyspark

    conf = place / "conf"
    conf.mkdir()
    jars = Path(pyspark.__file__).parent / "jars"
    java = [str(find_java()), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    java += ["-cp", f"{conf}:{os.environ[HADOOP_JAR]}:{jars}/*"]
    kind = "org.apache.hadoop.hdfs.server"
    port = _free_port()
    for name in ("core-site.xml", "hdfs-site.xml"):
        (conf / name).write_text(_SITE.format(port=port, data=place / "data"))
    started: list[subprocess.Popen[bytes]] = []
    with open(place / "hdfs.log", "wb") as log:
        options = {"stdout": log, "stderr": log, "cwd": place}
        subprocess.run([*java, f"{kind}.namenode.NameNode", "-format", "-nonInteractive"], check=True, **options)
        try:
            for server in ("namenode.NameNode", "datanode.DataNode"):
                words = [*java, f"{kind}.{server}"]
                started.append(subprocess.Popen(words, preexec_fn=die_with_parent, **options))
            until(lambda: _takes_files(f"hdfs://127.0.0.1:{port}"), "HDFS takes files", timeout_s=120)
            yield f"hdfs://127.0.0.1:{port}", {}
        finally:
            for process in started:
                process.kill()
                process.wait()


def _takes_files(base: str) -> bool:
    try:
        write_text(f"{base}/ready", "yes")
    except WarehouseError:
        return False
    return True


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


if __name__ == "__main__":
    serve_s3()
