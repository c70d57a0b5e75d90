"""Pictures of a live run: who is there, who owns what over time, what each rebalance changed, and three offsets.

Paper: §3 (Figure 1), §3.1 (flushed bytes only are exposed), §3.2 (one owner of a partition at a time; Algorithm 1).
"""

from __future__ import annotations

from classroom.figures.drawing import BLUE, COLOURS, GREEN, INK, LINE, ORANGE, RED, SKY, SOFT, WASH, Sheet
from classroom.figures.run import GROUP, TOPIC, Run
from classroom.observatory.frames import Frame
from classroom.observatory.lanes import NOBODY, lanes
from classroom.observatory.readers import called


def system(run: Run) -> str:
    """Figure 1: the cluster as it was when three consumers shared it."""
    frame = _at(run, run.settled[2])
    partitions = sorted(frame["topics"][TOPIC])
    brokers = sorted(frame["brokers"])
    owners = _owners(frame)
    readers = sorted(set(owners.values()))
    sheet = Sheet(
        960,
        150 + 150 * len(brokers),
        "Figure 1: producers, brokers, consumers",
        f"{sum(log['end'] for log in frame['topics'][TOPIC].values()):,} bytes of {TOPIC} in {len(partitions)} "
        f"partitions on {len(brokers)} brokers; {len(readers)} consumers of group {GROUP} share them.",
    )
    middle = 70 + 75 * len(brokers)
    _box(sheet, 16, middle - 30, 150, 60, ["a producer"], BLUE)
    heights: dict[str, float] = {}
    for row, number in enumerate(brokers):
        y = 80 + row * 150
        sheet.rect(330, y, 260, 130, fill=WASH, round_=8)
        sheet.text(344, y + 22, f"broker {number}", bold=True)
        sheet.line(170, middle, 326, y + 65, stroke=BLUE, arrow=True)
        mine = [name for name in partitions if name.startswith(f"{number}-")]
        for place, name in enumerate(mine):
            log = frame["topics"][TOPIC][name]
            top = y + 36 + place * 44
            _box(sheet, 344, top, 232, 38, [f"{TOPIC} {name}: {len(log['segments'])} files"], GREEN)
            heights[name] = top + 19
    for row, reader in enumerate(readers):
        height = 70 + (150 * len(brokers)) * (row + 0.5) / len(readers)
        _box(sheet, 780, height - 26, 160, 52, [reader], COLOURS[row + 1])
        for name, owner in owners.items():
            if owner == reader:
                sheet.line(580, heights[name], 776, height, stroke=SOFT, arrow=True)
    return sheet.svg()


def ownership(run: Run) -> str:
    """Lanes: one per consumer, a strip per partition; red where nobody read."""
    window = run.film.between(run.changes[0][0], run.film.last)
    found = lanes(window, GROUP)
    assert found is not None
    partitions = found["partitions"]
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(partitions)}
    first, last = int(window[0]["t"]), int(window[-1]["t"])
    strip = 14
    rows = [(member, sorted({span["partition"] for span in member["spans"]})) for member in found["members"]]
    height = 110 + sum(max(len(names), 2) * strip + 14 for _, names in rows) + 40
    sheet = Sheet(
        980,
        height,
        "Who owns which partition, through four generations",
        f"Algorithm 1, live: {len(partitions)} partitions; red: owned by the dead, or by nobody.",
    )

    def x(t: float) -> float:
        return 150 + 800 * (t - first) / max(last - first, 1)

    y = 86.0
    for member, names in rows:
        high = max(len(names), 2) * strip
        label = "nobody" if member["id"] == NOBODY else member["name"]
        sheet.text(16, y + 14, label + ("" if member["here"] else " (gone)"), fill=INK if member["here"] else SOFT)
        sheet.rect(150, y - 2, 800, high + 4)
        for span in member["spans"]:
            top = y + names.index(span["partition"]) * strip
            bad = span["state"] or member["id"] == NOBODY
            words = f"{span['partition']}: {span['state'] or label}"
            width = x(span["to"]) - x(span["from"])
            sheet.rect(
                x(span["from"]), top, width, strip - 2, fill=RED if bad else colours[span["partition"]],
                stroke="none", title=words, opacity=0.55 if bad else 0.9,
            )  # fmt: skip
            if width > 40 and not bad:
                sheet.text(x(span["from"]) + 4, top + 10, span["partition"].split(" ")[1], size=10, fill="#ffffff")
        y += high + 14
    for t, says in run.changes:
        sheet.line(x(t), 74, x(t), y, stroke=SOFT, dashed=True)
        sheet.text(min(x(t) + 3, 830), 72, says, size=11, fill=RED if "killed" in says else SOFT)
    _seconds(sheet, x, first, last, y)
    return sheet.svg()


def generations(run: Run) -> str:
    """The four generations side by side: what each consumer owns, and what moved to it since the one before."""
    sheet = Sheet(
        1000,
        360,
        "One rebalance after the other",
        "Each consumer computes the same shares from the same sorted lists; boxes with a thick edge moved.",
    )
    before: dict[str, str] = {}
    for number, (t, (_, says)) in enumerate(zip(run.settled, run.changes, strict=True)):
        owners = _owners(_at(run, t))
        x = 16 + number * 246
        took = (t - run.changes[number][0]) / 1000
        sheet.rect(x, 66, 230, 280, fill=WASH, round_=8)
        sheet.text(x + 12, 90, f"generation {number + 1}", bold=True)
        sheet.text(x + 12, 108, says, fill=RED if "killed" in says else SOFT)
        sheet.text(x + 12, 124, f"settled after {took:.1f} s", fill=SOFT)
        for row, reader in enumerate(sorted(set(owners.values()))):
            y = 140 + row * 66
            sheet.text(x + 12, y + 12, reader)
            mine = sorted(name for name, owner in owners.items() if owner == reader)
            for place, name in enumerate(mine):
                moved = bool(before) and before.get(name) != reader
                colour = COLOURS[sorted(owners).index(name) % len(COLOURS)]
                sheet.rect(
                    x + 12 + place * 52, y + 20, 46, 30, fill=colour, stroke=INK if moved else LINE, round_=4,
                    opacity=1 if moved else 0.6,
                )  # fmt: skip
                sheet.text(x + 35 + place * 52, y + 40, name, anchor="middle", fill="#ffffff", bold=moved)
        before = owners
    return sheet.svg()


def offsets(run: Run) -> str:
    """End, flushed end and stored offset of one partition, over the run."""
    frames = [frame for frame in run.film.between(run.changes[0][0], run.film.last) if TOPIC in frame["topics"]]
    name = max(frames[-1]["topics"][TOPIC], key=lambda place: frames[-1]["topics"][TOPIC][place]["end"])
    first, last = int(frames[0]["t"]), int(frames[-1]["t"])
    most = int(frames[-1]["topics"][TOPIC][name]["end"])
    sheet = Sheet(
        980,
        430,
        f"Written, flushed, stored: {TOPIC} {name}",
        "Readers see a message only once it is flushed; the group stores its offset every second.",
    )

    def x(t: float) -> float:
        return 80 + 870 * (t - first) / max(last - first, 1)

    def y(offset: float) -> float:
        return 380 - 290 * offset / max(most, 1)

    series: dict[str, list[tuple[float, float]]] = {"written end": [], "flushed end": [], "stored by the group": []}
    for frame in frames:
        log = frame["topics"][TOPIC][name]
        series["written end"].append((x(frame["t"]), y(log["end"])))
        series["flushed end"].append((x(frame["t"]), y(log["flushed"])))
        stored = frame["groups"].get(GROUP, {}).get("offsets", {}).get(TOPIC, {}).get(name)
        if stored is not None:
            series["stored by the group"].append((x(frame["t"]), y(stored)))
    for place, ((says, points), colour) in enumerate(zip(series.items(), (SKY, GREEN, ORANGE), strict=True)):
        sheet.path(points, stroke=colour)
        sheet.rect(80 + place * 190, 58, 14, 14, fill=colour, stroke="none")
        sheet.text(100 + place * 190, 70, says)
    for part in (0, 0.5, 1):
        sheet.text(72, y(most * part) + 4, f"{most * part:,.0f}", anchor="end", fill=SOFT, size=11)
        sheet.line(80, y(most * part), 950, y(most * part), stroke=LINE, width=0.7)
    for t, says in run.changes:
        sheet.line(x(t), 84, x(t), 380, stroke=SOFT, dashed=True)
        sheet.text(min(x(t) + 3, 830), 92, says, size=11, fill=RED if "killed" in says else SOFT)
    _seconds(sheet, x, first, last, 384)
    return sheet.svg()


def _at(run: Run, t: int) -> Frame:
    frame = run.film.at(t)
    assert frame is not None
    return frame


def _owners(frame: Frame) -> dict[str, str]:
    """Partition -> name of its owner."""
    names = frame.get("names", {})
    owned = frame["groups"][GROUP]["owners"].get(TOPIC, {})
    return {partition: called(member, names) for partition, member in sorted(owned.items())}


def _box(sheet: Sheet, x: float, y: float, width: float, height: float, lines: list[str], colour: str) -> None:
    sheet.rect(x, y, width, height, fill="#ffffff", stroke=colour, round_=6)
    for row, says in enumerate(lines):
        sheet.text(x + width / 2, y + height / 2 + 5 + row * 16, says, anchor="middle")


def _seconds(sheet: Sheet, x: object, first: int, last: int, y: float) -> None:
    assert callable(x)
    step = 5_000 if last - first > 15_000 else 1_000
    for t in range(first, last + 1, step):
        sheet.text(x(t), y + 18, f"{(t - first) / 1000:.0f} s", anchor="middle", fill=SOFT, size=11)
