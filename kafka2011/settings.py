"""Every setting of the broker: one table, from which the loader, the sample file and the manual are made.

The names are Kafka 0.7's wherever 0.7 had the setting. Defaults are 0.7's too, unless ``help`` says otherwise;
``docs/paper-vs-code.md`` lists those with the reason.

Paper: §3.1 (segments, flush, retention), §3.2 (partitions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TopicMap = Mapping[str, int]
"""Per-topic values, written ``clicks:4,views:2``."""

Value = bool | int | float | str | Path | TopicMap | None

MiB = 1 << 20
INT32_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name, what it may hold, what it means.

    ``type`` is ``int``, ``float``, ``bool``, ``str``, ``Path`` or ``Mapping`` (a TopicMap). A default of None means
    "not set"; ``inherit`` then names the setting whose value is taken instead.
    """

    name: str
    type: type
    default: Value
    unit: str
    help: str
    section: str = "broker"
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    inherit: str | None = None


def _number(
    name: str, default: int | None, unit: str, help: str, section: str, *,
    at_least: int = 0, at_most: int | None = None, inherit: str | None = None,
) -> Setting:
    return Setting(name, int, default, unit, help, section, minimum=at_least, maximum=at_most, inherit=inherit)


def _per_topic(name: str, unit: str, help: str, section: str) -> Setting:
    return Setting(name, Mapping, {}, unit, help, section, minimum=1)


IDENTITY = (
    _number("brokerid", 0, "", "Number of this broker, unique in the cluster (0.7 had no default).", "identity"),
    Setting("hostname", str, None, "", "Address told to others (in ZooKeeper); unset: where we listen.", "identity"),
    Setting("bind.address", str, "127.0.0.1", "", "Address to listen on. 0.7 listened on all; 0.0.0.0 does that. "
            "The 2011 protocol has no login: leave loopback only inside a network you trust, or with tls.client.ca.",
            "identity"),
    _number("port", 9092, "", "Port of the 2011 protocol; 0 takes a free one.", "identity", at_most=65535),
    Setting("port.access", str, "open", "", "Who reaches the 2011 port: open (whoever reaches bind.address), loopback "
            "(this machine only, whatever bind.address says) or off (nobody; then modern.port must be set).",
            "identity", choices=("open", "loopback", "off")),
    Setting("tls.certificate", Path, None, "", "PEM file with the broker's certificate, then its chain; set it and "
            "tls.key to speak TLS on the port (not in 2011). Fetches are then copied, not sent with sendfile.",
            "identity"),
    Setting("tls.key", Path, None, "", "PEM file with the private key of tls.certificate.", "identity"),
    Setting("tls.client.ca", Path, None, "", "PEM file with one authority or several; clients must show a "
            "certificate signed by one.", "identity"),
    _number("admin.port", None, "", "Port of the admin HTTP (/state, /metrics, /events, /healthz); 0 takes a free "
            "one; unset: off.", "identity", at_most=65535),
    Setting("admin.address", str, "127.0.0.1", "", "Address of the admin HTTP. Whoever reaches it sees everything "
            "but the messages: leave loopback only inside a network you trust.", "identity"),
    _number("admin.max.connections", 64, "connections", "Of the admin HTTP, streams of /events included; half of "
            "them from one address. At the limit the quietest gives way.", "identity", at_least=2),
    Setting("zk.connect", str, None, "", "ZooKeeper, host:port,…[/chroot]; unset: no registration.", "identity"),
    Setting("enable.zookeeper", bool, True, "", "false: never register, even with zk.connect.", "identity"),
    _number("modern.port", None, "", "Port of today's protocol; 0 takes a free one; unset: off.", "identity",
            at_most=65535),
)

LOG = (
    Setting("log.dir", Path, Path("~/.local/share/kafka2011"), "", "Directory of the data; one broker per directory. "
            "(Where XDG_DATA_HOME is set: kafka2011 in there. 0.7's sample: /tmp/kafka-logs.)", "log (§3.1)"),
    Setting("log.dir.allow.shared", bool, False, "", "Use a log.dir that belongs to another user, or that others can "
            "write to; what they put there is served.", "log (§3.1)"),
    _number("num.partitions", 1, "partitions", "Partitions of a topic on this broker.", "log (§3.1)", at_least=1),
    _per_topic("topic.partition.count.map", "partitions", "The same, per topic.", "log (§3.1)"),
    _number("log.file.size", 1 << 30, "bytes", "A segment larger than this is followed by a new one.", "log (§3.1)",
            at_least=1, at_most=INT32_MAX),
    _per_topic("topic.log.file.size", "bytes", "The same, per topic.", "log (§3.1)"),
    _number("log.roll.hours", 168, "hours", "A segment whose first append is older than this is followed by a new "
            "one.", "log (§3.1)", at_least=1),
    _per_topic("topic.log.roll.hours", "hours", "The same, per topic.", "log (§3.1)"),
    _number("max.topics", 10_000, "topics", "No more topics are created than this (0.7: no limit).", "log (§3.1)",
            at_least=1),
    _number("max.partitions", 20_000, "partitions", "No more topics are created once those there are have this many "
            "partitions on this broker (0.7: no limit).", "log (§3.1)", at_least=1),
    _number("max.topic.name.length", 200, "characters", "Longest topic name: letters, digits, dot, dash and "
            "underscore (0.7: 255, nearly any character).", "log (§3.1)", at_least=1, at_most=200),
    Setting("log.corrupt.policy", str, "offline", "", "What to do with a partition whose flushed bytes are damaged: "
            "offline (not served until a person looked; nothing is lost) or truncate (set the damaged segment aside "
            "and go on).", "log (§3.1)", choices=("offline", "truncate")),
)

FLUSH = (
    _number("log.flush.interval", 500, "messages", "Flush a partition after this many messages; only flushed messages "
            "can be fetched.", "flush (§3.1)", at_least=1),
    _number("log.default.flush.scheduler.interval.ms", 100, "ms", "How often to look for partitions to flush by age. "
            "0.7: 3000; here a lone message is visible after about a tenth of a second.", "flush (§3.1)", at_least=1),
    _number("log.default.flush.interval.ms", None, "ms", "Flush a partition when its last flush is this long ago.",
            "flush (§3.1)", at_least=1, inherit="log.default.flush.scheduler.interval.ms"),
    _per_topic("topic.flush.intervals.ms", "ms", "The same, per topic.", "flush (§3.1)"),
    _number("log.flush.for.readers.ms", 2, "ms", "While somebody fetches at the flushed end of a partition, flush what "
            "is appended there at once, in syncs at least this far apart; 0: never. (0.7: never.)", "flush (§3.1)",
            at_least=0, at_most=60_000),
    _number("num.threads", 4, "threads", "Threads for flush and retention: a slow disk never stops the network. "
            "(0.7: network threads.)", "flush (§3.1)", at_least=1, at_most=64),
)

RETENTION = (
    _number("log.retention.hours", 168, "hours", "Delete segments last written longer ago than this: seven days, as "
            "in the paper.", "retention (§3.1)", at_least=1),
    _per_topic("topic.log.retention.hours", "hours", "The same, per topic.", "retention (§3.1)"),
    _number("log.retention.size", -1, "bytes", "Delete the oldest segments of a partition while what is left stays at "
            "least this big; -1: no limit.", "retention (§3.1)", at_least=-1),
    _per_topic("topic.log.retention.size", "bytes", "The same, per topic.", "retention (§3.1)"),
    _number("log.cleanup.interval.mins", 10, "minutes", "How often retention looks.", "retention (§3.1)", at_least=1),
)

LIMITS = (
    _number("max.message.size", 1_000_000, "bytes", "A set holding a larger payload is dropped; the connection stays.",
            "limits", at_least=1, at_most=INT32_MAX),
    _number("max.socket.request.bytes", 8 * MiB, "bytes", "A larger request closes its connection, before anything is "
            "allocated. 0.7: 104857600.", "limits", at_least=64, at_most=INT32_MAX),
    _number("max.request.inflated.bytes", 32 * MiB, "bytes", "What the compressed sets of one request may inflate to "
            "together (a single set: 8388608); a request that would inflate to more is refused.", "limits",
            at_least=MiB, at_most=INT32_MAX),
    _number("max.request.messages", 500_000, "messages", "Most messages in one request, those inside compressed sets "
            "counted; a request with more is refused.", "limits", at_least=1),
    _number("max.frames.in.flight.bytes", 64 * MiB, "bytes", "Half-received requests of all connections together; "
            "over it, all but the oldest wait.", "limits", at_least=64),
    _number("max.connections", 1000, "connections", "Of both ports together. At the limit the address with the most "
            "connections gives way to others: one that never sent a whole request, else its quietest. Eight more are "
            "kept for this machine. Never more than half of the files the process may open.", "limits", at_least=1),
    _number("max.connections.per.address", 250, "connections", "Of one client address. At the limit one that never "
            "sent a whole request gives way, else the quietest if it is idle for ten seconds, else the newcomer is "
            "closed.", "limits", at_least=1),
    _number("max.topic.creations.per.second", 50, "topics", "How many new topics one client address may have created, "
            "in the long run; more are refused for the moment. 0: no limit.", "limits", at_least=0),
    _number("max.topic.creations.burst", 500, "topics", "The same, all at once.", "limits", at_least=1),
    _number("connection.first.byte.ms", 60_000, "ms", "Close a connection that says nothing for this long after it "
            "was opened.", "limits", at_least=1),
    _number("connection.frame.ms", 30_000, "ms", "Close a connection whose request is not whole after this long.",
            "limits", at_least=1),
    _number("connection.idle.ms", 600_000, "ms", "Close a connection that neither sends nor takes a byte for this "
            "long.", "limits", at_least=1),
    _number("socket.send.buffer", 1 << 20, "bytes", "SO_SNDBUF: an answer of this size leaves with one sendfile, and "
            "what waits there is pages of the file, not copies. 0.7: 102400.", "limits",
            at_least=1024, at_most=INT32_MAX),
    _number("socket.receive.buffer", None, "bytes", "SO_RCVBUF; unset: the kernel sizes it. 0.7: 102400.", "limits",
            at_least=1024, at_most=INT32_MAX),
    _number("shutdown.timeout.ms", 8000, "ms", "How long a stop may take before what is left is abandoned; the data is "
            "safe either way.", "limits", at_least=1),
)

EXTENSIONS = (
    Setting("produce.acks.enable", bool, False, "", "Answer request key 100, a produce that is acknowledged after "
            "append or flush (not in 2011).", "extensions (not in 2011)"),
    _number("produce.acks.timeout.ms", 10_000, "ms", "How long such a produce waits for the disk; then it is answered "
            "with code 106, appended but not known to be on disk. (A modern client brings its own.)",
            "extensions (not in 2011)", at_least=1),
)

BROKER_SETTINGS: tuple[Setting, ...] = IDENTITY + LOG + FLUSH + RETENTION + LIMITS + EXTENSIONS

_CLIENT = "clients (not in 2011)"
CLIENT_SETTINGS: tuple[Setting, ...] = (
    Setting("client.tls", bool, False, "", "Speak TLS to brokers, whose certificate must be for the host name that is "
            "dialled. Also on when one of the files below is set.", _CLIENT),
    Setting("client.tls.ca", Path, None, "", "PEM file of the authority behind the brokers' certificates; unset: those "
            "of the system.", _CLIENT),
    Setting("client.tls.certificate", Path, None, "", "PEM file with our own certificate, where brokers ask for one "
            "(tls.client.ca).", _CLIENT),
    Setting("client.tls.key", Path, None, "", "PEM file with its key.", _CLIENT),
    Setting("client.sasl.user", str, None, "", "Whom to log in as at the modern port (SCRAM-SHA-256).", _CLIENT),
    Setting("client.sasl.password.file", Path, None, "", "File with the password, closed to others.", _CLIENT),
    Setting("client.zk.tls", bool, False, "", "Speak TLS to ZooKeeper, which must show a certificate for the host name "
            "of -z. Also on when one of the files below is set.", _CLIENT),
    Setting("client.zk.tls.ca", Path, None, "", "PEM file of the authority behind ZooKeeper's certificate: then no "
            "other is trusted; unset: those of the system.", _CLIENT),
    Setting("client.zk.tls.certificate", Path, None, "", "PEM file with our own certificate, where ZooKeeper asks for "
            "one.", _CLIENT),
    Setting("client.zk.tls.key", Path, None, "", "PEM file with its key.", _CLIENT),
    Setting("client.zk.credential.file", Path, None, "", "File with user:password, closed to others. What we create "
            "in ZooKeeper is then writable with it only, and readable by all.", _CLIENT),
)
"""What a client shows and trusts: one declaration for every command, consumer, the page and the load."""

WITHOUT_EFFECT: Mapping[str, str] = {
    "monitoring.period.secs": "rates are computed by whoever reads /metrics",
}
"""Settings of 0.7 that are accepted in old files and change nothing here."""
