"""Tooltips for the paper's words, in the reader's language: ``classroom/glossary.tsv``, one column for each.

A browser names its languages in Accept-Language, the dearest first. A word gets its translation and what it means; in
English, and where a language is not in the table, only what it means.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

_NOT_A_LANGUAGE = {"en", "means"}


@cache
def _rows() -> list[dict[str, str]]:
    text = (files("classroom") / "glossary.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


def language(accepted: str) -> str:
    """The first language of an Accept-Language header that the table has, by the weights; else English."""
    known = {"en"} | _rows()[0].keys() - _NOT_A_LANGUAGE
    wishes = []
    for place, wish in enumerate(accepted.split(",")):
        tag, _, weight = wish.partition(";")
        try:
            dear = float(weight.partition("=")[2]) if weight else 1.0
        except ValueError:
            continue
        wishes.append((-dear, place, tag.strip().partition("-")[0].lower()))
    return next((tag for _, _, tag in sorted(wishes) if tag in known), "en")


def tooltips(accepted: str) -> dict[str, str]:
    """English word -> what a tooltip says of it to a reader of these languages."""
    chosen = language(accepted)
    return {
        row["en"]: f"{row['en']}: {row['means']}" if chosen == "en" else f"{row[chosen]} ({row['en']}): {row['means']}"
        for row in _rows()
    }
