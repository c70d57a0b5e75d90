"""A report one would hand out: one HTML page that needs nothing else, and the same as Markdown with pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from classroom.claims.claim import Verdict
from classroom.claims.picture import draw

Results = Mapping[str, dict[str, Any]]

METHOD = (
    "Each claim is a sentence of the paper, an experiment on real processes of this project, a threshold that "
    "stands in the code before the run, and a verdict that is computed from the figures alone.",
    "Counts decide where they can: messages, bytes, pages, system calls (ptrace), forced writes. Where time must, "
    "it is the CPU time of the processes as the scheduler counts it, compared within one run, in rounds that take "
    "turns; the best round of each side counts, since whatever disturbs a round only makes it slower. What cannot "
    "be told on a machine is said so.",
    "Every experiment can be turned upside down (kafka2011 claims run C03 --twist: sendfile off, CRC off, flush "
    "rule off …). A test checks for each claim that its verdict then changes.",
    "Nothing needs root. Dissent says what would change a verdict: another machine, another reading of the sentence.",
)
_COLOURS = {Verdict.HOLDS: "#1b7f4b", Verdict.FOOTNOTE: "#8a6100", Verdict.FAILS: "#b3261e", Verdict.UNKNOWN: "#555"}
_STYLE = """
body { font: 16px/1.5 sans-serif; color: #222; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
td, th { border-bottom: 1px solid #ddd; padding: 0.35rem 0.5rem; text-align: left; vertical-align: top; }
blockquote { margin: 0.5rem 0; padding-left: 1rem; border-left: 3px solid #bbb; font-style: italic; }
section { margin-top: 2.5rem; break-inside: avoid; }
svg { max-width: 100%; height: auto; }
dt { font-weight: bold; } dd { margin: 0 0 0.4rem 1rem; }
.verdict { font-weight: bold; }
"""
_PARTS = (("threshold", "Threshold"), ("experiment", "Experiment"), ("figure", "Figure"), ("footnote", "Footnote"),
          ("spread", "Spread"), ("twist", "Upside down"), ("dissent", "Dissent"), ("later", "Later"))  # fmt: skip


def write(results: Results, directory: Path, *, root: str = "../../..") -> list[Path]:
    """Write report.html, README.md and a picture for each claim; ``root`` leads from there to the repository."""
    directory.mkdir(parents=True, exist_ok=True)
    written = [directory / "report.html", directory / "README.md"]
    written[0].write_text(html(results))
    written[1].write_text(markdown(results, root))
    for number, result in results.items():
        path = directory / f"{number}.svg"
        path.write_text(draw(result["plot"], result["title"]) + "\n")
        written.append(path)
    return written


def summary(results: Results) -> str:
    """How many of each verdict."""
    counts = Counter(result["verdict"] for result in results.values())
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def _where(results: Results) -> str:
    """Machines and dates of the runs, mostly one."""
    machines = sorted({result["machine"] for result in results.values()})
    dates = sorted(result["date"] for result in results.values())
    scales = sorted({result["scale"] for result in results.values()})
    minutes = sum(result["seconds"] for result in results.values()) / 60
    when = dates[0] if dates[0][:10] == dates[-1][:10] else f"{dates[0]} to {dates[-1]}"
    return f"{'; '.join(machines)}. Run on {when}, {minutes:.0f} minutes in all, size: {', '.join(scales)}."


def markdown(results: Results, root: str) -> str:
    """The report with links into the repository."""
    lines = ["<!-- written by `kafka2011 claims report`; do not edit -->", "# The paper on trial", ""]
    lines += [f"{len(results)} sentences: {summary(results)}.", "", _where(results), ""]
    lines += ["| | § | claim | verdict | figure | dissent |", "|---|---|---|---|---|---|"]
    for number, one in results.items():
        cells = (one["title"], f"**{one['verdict']}**", one["figure"], one["dissent"])
        told = " | ".join(cell.replace("|", "\\|") for cell in cells)
        lines.append(f"| [{number}](#{number.lower()}) | {one['section']} | {told} |")
    lines += ["", "## Method", "", *(f"- {line}" for line in METHOD), ""]
    for number, one in results.items():
        lines += [f'<a id="{number.lower()}"></a>', f"## {number} {one['title']}", ""]
        lines += [f"> {one['sentence']} (§{one['section']})", ""]
        lines += [f"**{one['verdict']}**", "", f"![{one['title']}]({number}.svg)", ""]
        lines += [f"- {name}: {one[key]}" for key, name in _PARTS if one[key]]
        links = [*one["code"], *one["tests"], *([one["walk"]] if one["walk"] else [])]
        lines += ["- Look at: " + ", ".join(f"[{path}]({root}/{path})" for path in links)]
        lines += [f"- Run: {one['date']}, {one['seconds']} s; {one['busy']}", ""]
    return "\n".join(lines)


def html(results: Results) -> str:
    """One page with everything in it."""
    rows = "".join(
        f'<tr><td><a href="#{number}">{number}</a></td><td>{one["section"]}</td><td>{escape(one["title"])}</td>'
        f"<td>{_verdict(one)}</td><td>{escape(one['figure'])}</td><td>{escape(one['dissent'])}</td></tr>\n"
        for number, one in results.items()
    )
    method = "".join(f"<li>{escape(line)}</li>" for line in METHOD)
    sections = "".join(_section(number, one) for number, one in results.items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>The paper on trial</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>
<h1>The paper on trial</h1>
<p>Sentences of <em>Kafka: a Distributed Messaging System for Log Processing</em> (2011), tried by experiment.</p>
<p>{len(results)} sentences: <strong>{escape(summary(results))}</strong>.</p>
<p>{escape(_where(results))}</p>
<table><thead><tr><th></th><th>§</th><th>claim</th><th>verdict</th><th>figure</th><th>dissent</th></tr></thead>
<tbody>
{rows}</tbody></table>
<h2>Method</h2><ul>{method}</ul>
{sections}</body></html>
"""


def _verdict(one: Mapping[str, Any]) -> str:
    return f'<span class="verdict" style="color:{_COLOURS[Verdict(one["verdict"])]}">{one["verdict"]}</span>'


def _section(number: str, one: Mapping[str, Any]) -> str:
    parts = "".join(f"<dt>{name}</dt><dd>{escape(one[key])}</dd>" for key, name in _PARTS if one[key])
    links = ", ".join(escape(path) for path in (*one["code"], *one["tests"], *([one["walk"]] if one["walk"] else [])))
    run = f"{one['date']}, {one['seconds']} s; {one['busy']}"
    return (
        f'<section id="{number}"><h2>{number} {escape(one["title"])}</h2>'
        f"<blockquote>{escape(one['sentence'])} (§{one['section']})</blockquote><p>{_verdict(one)}</p>"
        f"{draw(one['plot'], one['title'])}"
        f"<dl>{parts}<dt>Look at</dt><dd>{links}</dd><dt>Run</dt><dd>{escape(run)}</dd></dl></section>\n"
    )
