"""Start one ZooKeeper server of an ensemble inside a container.

``ZK_ID`` is this server's number from 1, ``ZK_SERVERS`` the names of all, in order ("zk1 zk2 zk3"; empty = alone). Java
takes this process's place, so that ``docker stop`` reaches it.
"""

import os
from pathlib import Path

from zk_registry.java import find_java

DATA = Path(os.environ.get("ZK_DATA", "/data"))
JARS = Path(os.environ.get("ZK_JARS", "/opt/zookeeper"))


def configuration(servers: list[str]) -> str:
    """The zoo.cfg of every server of the ensemble."""
    lines = [
        "tickTime=500",
        "initLimit=20",
        "syncLimit=4",
        f"dataDir={DATA}",
        "clientPort=2181",
        "maxClientCnxns=0",
        "minSessionTimeout=1000",
        "maxSessionTimeout=60000",
        "admin.enableServer=false",
        "4lw.commands.whitelist=srvr",
    ]
    lines += [f"server.{number}={name}:2888:3888" for number, name in enumerate(servers, 1)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the configuration and become the server."""
    config = DATA / "zoo.cfg"
    config.write_text(configuration(os.environ.get("ZK_SERVERS", "").split()))
    (DATA / "myid").write_text(os.environ.get("ZK_ID", "1"))
    java = str(find_java())
    classes = ":".join(str(jar) for jar in sorted(JARS.glob("*.jar")))
    flags = ["-Xmx256m", "-XX:+UseSerialGC", "-Dslf4j.internal.verbosity=ERROR", "-cp", classes]
    os.execv(java, [java, *flags, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)])


if __name__ == "__main__":
    main()
