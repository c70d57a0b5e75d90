"""§3.3: what recovery removes from a damaged log."""

from __future__ import annotations

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import NEVER_FLUSH, numbered, publish
from classroom.claims.harness.room import ClaimBroker
from kafka2011.errors import Kafka2011Error

CLAIM = Claim(
    number="C24",
    section="3.3",
    title="What recovery removes",
    sentence="Kafka runs a recovery process to remove those messages with inconsistent CRCs.",
    experiment="A broker is killed. Its log ends in half a message; or one message in the middle is damaged. It "
    "starts again, once as 0.7 did (cut at the damage), once as this broker does unless told otherwise. What is "
    "served, what is gone?",
    threshold="no damaged message is served; a footnote if intact ones go with it",
    twist="recovery does not look at CRCs",
    dissent="Someone who wants the intact messages after the damage at once: kafka2011 log salvage gets them "
    "out, under other offsets.",
    later="The same cut at the first bad batch, and then the leader's copy of the rest: since2011/log/recovery.py.",
    code=("kafka2011/log/recovery.py", "kafka2011/log/scan.py"),
    tests=("tests/unit/log/test_recovery.py", "tests/integration/broker/test_damage.py"),
    walk="docs/walks/2-flush-and-crash.md",
)

MESSAGES = 60
TORN, CUT, ASIDE = "torn end", "damage, cut as in 0.7", "damage, set aside"


def experiment(bench: Bench) -> Figures:
    """Two kinds of damage, two policies."""
    bench.plot("damage", "intact messages that are not served")
    found = {}
    for name, policy in {TORN: "offline", CUT: "truncate", ASIDE: "offline"}.items():
        damaged = None if name == TORN else bench.random.randrange(10, MESSAGES - 20)
        altered = ["no_crc"] if bench.twisted else []
        options = NEVER_FLUSH | {"log.corrupt.policy": policy}
        with bench.broker(options, altered=altered, name=name.replace(" ", "-").replace(",", "")) as broker:
            end = publish(broker, "t", numbered(MESSAGES))
            broker.kill()
            (path,) = broker.files("t")
            entry = end // MESSAGES
            with path.open("r+b") as file:
                if damaged is None:
                    file.truncate(end - entry // 2)
                else:
                    file.seek(damaged * entry + 100)
                    file.write(b"\x00\xff\x00\xff")
            broker.restart()
            served = _served(broker, end) // entry
        bad = served > damaged if damaged is not None else served == MESSAGES
        intact = MESSAGES - 1
        found[name] = {"bad_served": bool(bad), "intact_gone": intact - served + bool(bad)}
        bench.point("gone", name, found[name]["intact_gone"])
    return {"messages": MESSAGES, "found": found}


def judge(figures: Figures) -> Judgement:
    """Damaged ones must go; those that go with them are counted."""
    found = figures["found"]
    bad = sum(one["bad_served"] for one in found.values())
    cut, aside, torn = (found[name]["intact_gone"] for name in (CUT, ASIDE, TORN))
    figure = (
        f"{bad} of 3 damaged messages were served; with them went {torn} intact messages of a torn end, {cut} of "
        f"{figures['messages'] - 1} when the log is cut as in 0.7, {aside} when it is set aside for a person to look at"
    )
    spread = "exact; how many go depends on where the damage is"
    if bad:
        return Judgement(Verdict.FAILS, figure, spread)
    if cut or torn or aside:
        footnote = (
            "“Those messages” are more than the damaged ones: offsets are positions, so nothing can be taken out of "
            "the middle of a log. 0.7 cut off everything after the damage. This broker takes the partition offline "
            "instead, and keeps every byte."
        )
        return Judgement(Verdict.FOOTNOTE, figure, spread, footnote)
    return Judgement(Verdict.HOLDS, figure, spread)


def _served(broker: ClaimBroker, end: int) -> int:
    """Bytes from the beginning of the log that a raw fetch is given."""
    with broker.connect() as connection:
        try:
            return len(connection.fetch("t", 0, 0, end))
        except Kafka2011Error:
            return 0  # the partition is offline
