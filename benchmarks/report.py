"""The table and the figures in ``docs/results/``."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import Results
from benchmarks.system import MESSAGE_SIZE
from benchmarks.systems import SYSTEMS
from benchmarks.systems.ours import Kafka2011

_RATIOS = [
    ("produce, batch 50", ("kafka2011", "produce", 50), ("RabbitMQ", "produce", 1), 50.0),
    ("produce, batch 50", ("kafka2011", "produce", 50), ("librdkafka + mock broker", "produce", 50), 2.0),
    ("produce, batch 1", ("kafka2011", "produce", 1), ("RabbitMQ", "produce", 1), 15.0),
    ("produce, batch 1", ("kafka2011", "produce", 1), ("NATS JetStream", "produce", 1), 1.3),
    ("consume by offset", ("kafka2011", "consume", 0), ("RabbitMQ", "consume", 0), 12.0),
    ("consume by offset", ("kafka2011", "consume", 0), ("Redis streams", "consume", 0), 1.0),
]

_PAPER = {
    ("produce", "batch 1 in 2011"): 50_000,
    ("produce", "batch 50 in 2011"): 400_000,
    ("consume", "2011"): 22_000,
}
"""Messages a second the paper reports for Kafka (§5)."""


def machine() -> dict[str, object]:
    """What the numbers were measured on."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}


def write(directory: Path, run: dict[str, Any], results: Results) -> None:
    """Write results.json, results.md, figure-4 and figure-5."""
    directory.mkdir(parents=True, exist_ok=True)
    run["date"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    run["machine"] = machine()
    run["cells"] = [measured.as_dict() for measured in results.values()]
    (directory / "results.json").write_text(json.dumps(run, indent=1) + "\n")
    (directory / "results.md").write_text("\n".join(_page(run, results)) + "\n")
    _figure(directory / "figure-4", ("produce",), "Producer (the paper's Figure 4)", results)
    _figure(directory / "figure-5", ("consume", "group"), "Consumer (the paper's Figure 5)", results)


def _page(run: dict[str, Any], results: Results) -> list[str]:
    found = run["machine"]
    lines = [
        "# The paper's §5, measured",
        "",
        f"Written by `{run['command']}` on {run['date']}: {found['cpu']}, {found['cores']} cores, Python "
        f"{found['python']}. {MESSAGE_SIZE}-byte messages, medians of {run['rounds']} interleaved rounds; server, "
        "producer and consumer in processes of their own. A fixed busy loop took "
        f"{run['busy_before_s']:.2f} s before and {run['busy_after_s']:.2f} s after the run: where these differ, or "
        "the spread is large, the machine was busy. Trust the ratios more than the digits.",
        "",
        "| system | | msg/s | ± | µs CPU client | µs CPU server |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for measured in sorted(results.values(), key=lambda m: (m.cell.role, -m.median)):
        row = measured.as_dict()
        lines.append(
            f"| {measured.system} | {measured.cell.label} | {measured.median:,.0f} | {measured.spread:.0%} | "
            f"{row['client_cpu_us_per_message']:.2f} | {row['server_cpu_us_per_message']:.2f} |"
        )
    lines += ["", "CPU is per message. librdkafka's mock broker runs inside the client.", ""]
    if run["missing"]:
        lines += ["Not measured:", "", *(f"- {name}: {why}" for name, why in run["missing"].items()), ""]
    lines += ["![Figure 4](figure-4.svg)", "", "![Figure 5](figure-5.svg)", "", "## Ratios", ""]
    lines += ["| kafka2011 | against | ratio | aim |", "|---|---|---:|---:|"]
    for label, ours, theirs, aim in _RATIOS:
        if ours in results and theirs in results:
            ratio = results[ours].median / results[theirs].median
            lines.append(f"| {label} | {theirs[0]}, {results[theirs].cell.label} | {ratio:.1f} | {aim:g} |")
    lines += ["", "## How each was set up", "", *(f"- **{s.name}**: {s.note}." for s in SYSTEMS.values()), ""]
    lines += _tables(run)
    return lines


def _tables(run: dict[str, Any]) -> list[str]:
    lines = [f"## The machine's limits, {run['limits_how']}", "", "| | MB/s |", "|---|---:|"]
    lines += [f"| {name} | {value:,.0f} |" for name, value in run["limits"].items()]
    lines += ["", "## Fetches of 300 KB to a raw reader", "", *_table([run["serving"]])]
    grown = run["growth"]
    lines += [
        "",
        "## As data grows",
        "",
        f"One broker per line, filled first; then {grown['rounds']} rounds in which {grown['step_mb']} MB are appended "
        "to each and eight times as much is fetched from each, and the same with a plain file that is synced as often. "
        "Rates are medians; *of* is the median of the ratios within a round; CPU is the broker's (of the plain file: "
        "the program's, with the receiver when it sends).",
        "",
        *_table(grown["rows"]),
    ]
    if grown["unsettled_turns"]:
        lines += ["", f"In {grown['unsettled_turns']} turns the disk was still busy writing back older data."]
    lines += ["", "## Fetches of others while an fsync takes 300 ms", "", *_table([run["slow_disk"]])]
    return lines


_HEADS = {
    "log_mb": "log, MB",
    "of_plain": "of the plain file's",
    "of_smallest": "of the smallest log's",
    "cpu_ms_per_mb": "CPU ms per MB",
    "of_sendfile": "of plain sendfile's",
    "of_smallest_fetch": "of the smallest log's",
    "fetch_cpu_ms_per_mb": "CPU ms per MB",
    "rss_mb": "resident, MB",
}


def _table(rows: list[dict[str, Any]]) -> list[str]:
    heads = [
        _HEADS.get(key, key.replace("_mb_per_s", ", MB/s").replace("_ms", ", ms").replace("_", " ")) for key in rows[0]
    ]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---:|" * len(heads)]
    return lines + ["| " + " | ".join("–" if v is None else str(v) for v in row.values()) + " |" for row in rows]


def _figure(path: Path, roles: tuple[str, ...], title: str, results: Results) -> None:
    """Medians as bars with the range of the rounds; on a log scale, since the systems are far apart."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "kafka2011"
    import matplotlib.pyplot as plt

    shown = sorted((m for m in results.values() if m.cell.role in roles), key=lambda m: m.median)
    names = [f"{m.system}, {m.cell.label.removeprefix('produce, ')}" for m in shown]
    low = [m.median - min(m.rates) for m in shown]
    high = [max(m.rates) - m.median for m in shown]
    colours = ["#c44e52" if m.system == Kafka2011.name else "#8c9aa8" for m in shown]
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(shown) + 1.4))
    axes.barh(names, [m.median for m in shown], xerr=[low, high], color=colours, capsize=3, log=True)
    for name, rate in _PAPER.items():
        if name[0] in roles:
            axes.axvline(rate, color="black", linewidth=0.8, linestyle=":")
            axes.text(
                rate, 0.0, f" {name[1]}", fontsize=7, rotation=90, va="bottom", transform=axes.get_xaxis_transform()
            )
    axes.set_xlabel("messages per second (dotted: Kafka in the paper, on the machines of 2011)")
    axes.set_title(title)
    figure.tight_layout()
    for suffix in (".svg", ".png"):
        figure.savefig(path.with_suffix(suffix), dpi=120, metadata={"Date": None} if suffix == ".svg" else None)
    plt.close(figure)
