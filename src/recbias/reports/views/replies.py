"""Replies of language models: how they ended, their tokens, and titles outside the catalogue."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recbias.core.errors import MissingRun
from recbias.core.input_files import has_file, open_input
from recbias.core.printable import MAX_VALUE_LENGTH, make_printable
from recbias.reports.run_files import REMEDY
from recbias.reports.views.grid import Cell, Table, make_columns
from recbias.reports.views.rounding import format_value
from recbias.reports.views.run_tables import RunTables

OUTCOMES = ("complete", "length", "refusal", "empty", "failed")
"""How a reply ended; only a complete one has text to read."""

UNMATCHED = ("unknown", "format", "newer")
"""The reasons for which a title of a reply matches no item."""

MAX_TITLES = 15
"""The largest number of unmatched titles of a model."""

REPEATS = {
    "repeated": "repeated_requests",
    "same text": "repeated_same_text",
    "same titles": "repeated_same_titles",
}
"""The columns of the table of repeated requests, and the facts that count them."""

READINGS = {
    "strict": "as asked",
    "lenient": "leniently",
    **{
        cause: cause
        for cause in (
            "format",
            "range",
            "unclear",
            "prose",
            "refusal",
            "length",
            "empty",
            "failed",
        )
    },
}
"""How replies about items are read, or why not, and their columns."""

AGREEMENT = {
    "share": "equal labels",
    "alpha": "alpha",
    "alpha_of_probabilities": "alpha of grades",
}
"""The facts about the agreement of samples, and their columns."""

_COUNTS = ("replies", *OUTCOMES, "stored before", "tokens in", "tokens out")


@dataclass
class ReplyCounts:
    """The replies to one model on one dataset.

    Args:
        counts: The numbers of replies by outcome, of stored ones, and of tokens.
        titles: How often each title is unmatched, by its words and the reason.
        spellings: The first spelling of each title.
    """

    counts: Counter[str] = field(default_factory=Counter)
    titles: Counter[tuple[str, str]] = field(default_factory=Counter)
    spellings: dict[str, str] = field(default_factory=dict)

    def add(self, line: Mapping[str, Any]) -> None:
        """Count a line of ``responses.jsonl``."""
        usage = line.get("usage") or {}
        self.counts["replies"] += 1
        self.counts[str(line["outcome"])] += 1
        self.counts["stored before"] += bool(line.get("cached"))
        self.counts["tokens in"] += usage.get("prompt_tokens", 0)
        self.counts["tokens out"] += usage.get("completion_tokens", 0)
        parsed = line.get("parsed")
        for rank in parsed if isinstance(parsed, list) else ():
            if rank["title"] and rank["outcome"] in UNMATCHED:
                words = " ".join(rank["title"].casefold().split())
                self.spellings.setdefault(words, rank["title"])
                self.titles[words, rank["outcome"]] += 1


def build_reply_tables(run: RunTables) -> list[Table]:
    """Return how replies ended, how many repeat, the commonest unmatched titles, and labels.

    Raises:
        MissingRun: ``responses.jsonl`` cannot be read.
    """
    counts = _count_replies(run.folder / "responses.jsonl")
    heads = ("dataset", "model") if len({dataset for dataset, _ in counts}) > 1 else ("model",)
    tables = [
        _tabulate_outcomes(counts, heads),
        _tabulate_repeats(run, heads),
        _tabulate_titles(counts, heads),
        _tabulate_readings(run),
        _tabulate_agreement(run),
    ]
    return [table for table in tables if table.rows]


def _count_replies(path: Path) -> dict[tuple[str, str], ReplyCounts]:
    """Return the counts by dataset and model, over seeds and folds; texts alone are no replies."""
    counts: dict[tuple[str, str], ReplyCounts] = {}
    for number, line in enumerate(_read_lines(path), 1):
        try:
            entry = json.loads(line)
            if entry["outcome"] is not None:
                counts.setdefault((entry["dataset"], entry["model"]), ReplyCounts()).add(entry)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            message = f"line {number} is not a reply as `recbias run` writes it"
            raise MissingRun(message, where=str(path), remedy=REMEDY) from error
    return counts


def _read_lines(path: Path) -> Iterator[bytes]:
    if has_file(path):
        with open_input(path) as stream:
            yield from stream


def _tabulate_outcomes(
    counts: Mapping[tuple[str, str], ReplyCounts], heads: tuple[str, ...]
) -> Table:
    rows = tuple(
        (
            *map(Cell, keys[-len(heads) :]),
            *(Cell(f"{replies.counts[name]:,}", replies.counts[name]) for name in _COUNTS),
        )
        for keys, replies in counts.items()
    )
    return Table("Replies", make_columns((*heads, *_COUNTS), numeric=_COUNTS), rows)


def _tabulate_repeats(run: RunTables, heads: tuple[str, ...]) -> Table:
    """Return how many requests were sent once more, and how many replies were the same."""
    counts: dict[tuple[str, ...], Counter[str]] = {}
    for stage in run.manifest.get("stages", []):
        facts = stage.get("facts") or {}
        if stage.get("kind") == "answer" and facts.get(REPEATS["repeated"]):
            keys = tuple(str(stage.get(name)) for name in heads)
            numbers = {name: facts[fact] for name, fact in REPEATS.items() if fact in facts}
            counts.setdefault(keys, Counter()).update(numbers)
    rows = tuple(
        (
            *map(Cell, keys),
            *(
                Cell(f"{numbers[name]:,}", numbers[name]) if name in numbers else Cell("")
                for name in REPEATS
            ),
        )
        for keys, numbers in counts.items()
    )
    columns = make_columns((*heads, *REPEATS), numeric=tuple(REPEATS))
    note = "Requests sent once more, unchanged. Same titles: at least one, in the same order."
    return Table("Repeatability of the replies", columns, rows, (note,))


def _tabulate_titles(
    counts: Mapping[tuple[str, str], ReplyCounts], heads: tuple[str, ...]
) -> Table:
    rows = tuple(
        (
            *map(Cell, keys[-len(heads) :]),
            Cell(make_printable(replies.spellings[words], MAX_VALUE_LENGTH)),
            Cell(reason),
            Cell(f"{count:,}", count),
        )
        for keys, replies in counts.items()
        for (words, reason), count in replies.titles.most_common(MAX_TITLES)
    )
    columns = make_columns((*heads, "title", "reason", "count"), numeric=("count",))
    note = f"At most {MAX_TITLES} a model; all replies are in responses.jsonl."
    return Table("Commonest titles without a matching item", columns, rows, (note,))


def _collect_labels(run: RunTables) -> dict[str, Mapping[str, Any]]:
    """Return the facts of labels by a language model, of one seed, by their stage."""
    facts = {
        str(stage.get("stage")): stage.get("facts") or {}
        for stage in run.manifest.get("stages", [])
        if stage.get("kind") == "label"
    }
    return {name: entry for name, entry in facts.items() if _select(entry, "readings")}


def _select(facts: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the facts whose names begin with a prefix, without it."""
    start = f"{prefix}."
    return {name.removeprefix(start): facts[name] for name in facts if name.startswith(start)}


def _tabulate_readings(run: RunTables) -> Table:
    rows = []
    for stage, facts in _collect_labels(run).items():
        counts = Counter(_select(facts, "readings"))
        numbers = [counts.total(), *(counts[name] for name in READINGS)]
        rows.append((Cell(stage), *(Cell(f"{number:,}", number) for number in numbers)))
    titles = ("replies", *READINGS.values())
    note = "How each reply was read, or why not; all of them are in label_replies.jsonl."
    columns = make_columns(("stage", *titles), numeric=titles)
    return Table("Labels by language models", columns, tuple(rows), (note,))


def _tabulate_agreement(run: RunTables) -> Table:
    rows = []
    for stage, facts in _collect_labels(run).items():
        agreement = _select(facts, "agreement")
        for kind in dict.fromkeys(name.rpartition(".")[0] for name in agreement):
            values = [agreement.get(f"{kind}.{name}") for name in AGREEMENT]
            numbers = [math.nan if value is None else float(value) for value in values]
            rows.append(
                (*map(Cell, (stage, kind)), *(Cell(format_value(x, 3), x) for x in numbers))
            )
    titles = tuple(AGREEMENT.values())
    note = "Of several samples of one text. Alpha is Krippendorff's."
    columns = make_columns(("stage", "kind", *titles), numeric=titles)
    return Table("Agreement between samples", columns, tuple(rows), (note,))
