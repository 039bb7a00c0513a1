"""Tables of the replies of language models, and of hyperparameter searches."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from recbias.core.errors import MissingRun
from recbias.core.files import has_file, open_input
from recbias.core.measures import FIT_COLUMNS
from recbias.core.text import MAX_VALUE_LENGTH, make_printable
from recbias.reports.run import REMEDY, RunTables, to_records
from recbias.reports.views import format_title
from recbias.reports.wording import (
    Cell,
    Table,
    count_decimals,
    format_duration,
    format_setting,
    format_value,
    make_columns,
)

_Key: TypeAlias = tuple[str, ...]

# how a reply ended; only a complete one has text to read
_OUTCOMES = ("complete", "length", "refusal", "empty", "failed")
_COUNTS = ("replies", *_OUTCOMES, "stored before", "tokens in", "tokens out")

# the reasons for which a title of a reply matches no item
_UNMATCHED = ("unknown", "format", "newer")
_MOST_TITLES = 15  # unmatched ones of a model

# the columns of the table of repeated requests, and the facts that count them
_REPEATS = {
    "repeated": "repeated_requests",
    "same text": "repeated_same_text",
    "same titles": "repeated_same_titles",
}

# how replies about items are read, or why not, and their columns
_READINGS = {
    "strict": "as asked",
    "lenient": "leniently",
    **{name: name for name in ("format", "range", "unclear", "prose")},
    **{name: name for name in ("refusal", "length", "empty", "failed")},
}

# the facts about the agreement of samples, and their columns
_AGREEMENT = {
    "share": "equal labels",
    "alpha": "alpha",
    "alpha_of_probabilities": "alpha of grades",
}


def build_reply_tables(run: RunTables) -> list[Table]:
    """Return how replies ended, how many repeat, the commonest unmatched titles, and labels.

    Raises:
        MissingRun: ``responses.jsonl`` cannot be read.
    """
    replies, titles = _count_replies(run.folder / "responses.jsonl")
    heads = ("dataset", "model") if len({dataset for dataset, _ in replies}) > 1 else ("model",)
    n = len(heads)
    labels = [
        (str(stage.get("stage")), stage.get("facts") or {})
        for stage in run.manifest.get("stages", [])
        if stage.get("kind") == "label"
    ]
    readings = {(name,): _select(facts, "readings") for name, facts in labels}
    agreement = {
        (name, kind): {key: found.get(f"{kind}.{key}") for key in _AGREEMENT}
        for name, facts in labels
        for found in [_select(facts, "agreement")]
        for kind in dict.fromkeys(key.rpartition(".")[0] for key in found)
    }
    unmatched = {
        (*key[-n:], make_printable(title, MAX_VALUE_LENGTH), reason): {"count": count}
        for key, counts in titles.items()
        for (title, reason), count in counts.most_common(_MOST_TITLES)
    }
    tables = [
        _tabulate(
            "Replies", heads, _COUNTS, {key[-n:]: counts for key, counts in replies.items()}
        ),
        _tabulate(
            *("Repeatability of the replies", heads, tuple(_REPEATS), _count_repeats(run, heads)),
            "Requests sent once more, unchanged. Same titles: at least one, in the same order.",
        ),
        _tabulate(
            *("Commonest titles without a matching item", (*heads, "title", "reason")),
            *(("count",), unmatched),
            f"At most {_MOST_TITLES} a model; all replies are in responses.jsonl.",
        ),
        _tabulate(
            *("Labels by language models", ("stage",), ("replies", *_READINGS.values())),
            {
                key: {"replies": sum(found.values())}
                | {name: found.get(cause, 0) for cause, name in _READINGS.items()}
                for key, found in readings.items()
                if found
            },
            "How each reply was read, or why not; all of them are in label_replies.jsonl.",
        ),
        _tabulate(
            *("Agreement between samples", ("stage", "kind"), tuple(_AGREEMENT.values())),
            {
                key: {
                    name: math.nan if (value := found[fact]) is None else float(value)
                    for fact, name in _AGREEMENT.items()
                }
                for key, found in agreement.items()
            },
            "Of several samples of one text. Alpha is Krippendorff's.",
        ),
    ]
    return [table for table in tables if table.rows]


def _tabulate(
    title: str,
    heads: Sequence[str],
    names: Sequence[str],
    rows: Mapping[_Key, Mapping[str, float | None]],
    *notes: str,
) -> Table:
    """Return a table of numbers by what heads their rows; one that is not known is blank."""
    cells = tuple(
        (*map(Cell, key), *(_format(numbers.get(name, 0)) for name in names))
        for key, numbers in rows.items()
    )
    return Table(title, make_columns((*heads, *names), numeric=names), cells, notes)


def _format(value: float | None) -> Cell:
    """Return a count, a share, or a blank cell for what is not known."""
    if value is None:
        return Cell("")
    return Cell(f"{value:,}" if isinstance(value, int) else format_value(value, 3), value)


def _count_repeats(run: RunTables, heads: Sequence[str]) -> dict[_Key, dict[str, int | None]]:
    """Return how many requests were sent once more, and how many replies were the same."""
    counts: dict[_Key, Counter[str]] = {}
    for stage in run.manifest.get("stages", []):
        facts = stage.get("facts") or {}
        if stage.get("kind") == "answer" and facts.get(_REPEATS["repeated"]):
            found = {name: facts[fact] for name, fact in _REPEATS.items() if fact in facts}
            counts.setdefault(_get_key(stage, heads), Counter()).update(found)
    return {key: {name: found.get(name) for name in _REPEATS} for key, found in counts.items()}


def _count_replies(
    path: Path,
) -> tuple[dict[_Key, Counter[str]], dict[_Key, Counter[tuple[str, str]]]]:
    """Return the counts of replies, and of their titles without an item, by dataset and model.

    They are over seeds and folds; texts alone are no replies. Titles in other capitals are one.
    """
    counts: dict[_Key, Counter[str]] = defaultdict(Counter)
    titles: dict[_Key, Counter[tuple[str, str]]] = defaultdict(Counter)
    spellings: dict[str, str] = {}
    for number, text in enumerate(_read_lines(path), 1):
        try:
            line = json.loads(text)
            if line["outcome"] is None:
                continue
            key, usage = (line["dataset"], line["model"]), line.get("usage") or {}
            counts[key].update(("replies", str(line["outcome"])))
            counts[key]["stored before"] += bool(line.get("cached"))
            counts[key]["tokens in"] += usage.get("prompt_tokens", 0)
            counts[key]["tokens out"] += usage.get("completion_tokens", 0)
            parsed = line.get("parsed")
            for rank in parsed if isinstance(parsed, list) else ():
                if rank["title"] and rank["outcome"] in _UNMATCHED:
                    words = " ".join(rank["title"].casefold().split())
                    title = spellings.setdefault(words, rank["title"])
                    titles[key][title, rank["outcome"]] += 1
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            message = f"line {number} is not a reply as `recbias run` writes it"
            raise MissingRun(message, where=str(path), remedy=REMEDY) from error
    return counts, titles


def _read_lines(path: Path) -> Iterator[bytes]:
    if has_file(path):
        with open_input(path) as stream:
            yield from stream


def _select(facts: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the facts whose names begin with a prefix, without it."""
    start = f"{prefix}."
    return {name.removeprefix(start): facts[name] for name in facts if name.startswith(start)}


def _get_key(row: Mapping[str, Any], names: Sequence[str] = FIT_COLUMNS) -> _Key:
    return tuple(str(row.get(name)) for name in names)


# ---- searches ----

_UNFINISHED = ("pruned", "excluded", "failed")  # the states of trials that cannot be chosen
_NOTES = (
    "Values are scores on the validation set, by which settings are chosen; see trials.csv.",
    "Pruned: the score was below the median of the earlier trials.",
    "Excluded: the perplexity increased too much.",
)


def tabulate_searches(run: RunTables) -> Table | None:
    """Return a row for each search with the chosen settings; None if the run has no search.

    The importance of a setting is the share of the variance over trials that it explains.

    Raises:
        MissingRun: ``trials.csv`` is not a file that a run writes.
    """
    outcomes = {_get_key(search): search for search in run.manifest.get("searches", [])}
    trials: dict[_Key, list[dict[str, Any]]] = defaultdict(list)
    for row in read_trials(run):
        if _get_key(row) in outcomes:
            trials[_get_key(row)].append(row)
    importances: dict[_Key, dict[str, float]] = defaultdict(dict)
    for row in to_records(run.importances) if run.importances is not None else ():
        importances[_get_key(row)][str(row["setting"])] = row["importance"]
    varying = [at for at in (0, 2, 3) if len({key[at] for key in trials}) > 1]
    heads = ("model", *(FIT_COLUMNS[at] for at in varying), "metric")
    rows = []
    for key, own in trials.items():
        found = outcomes[key]
        (best,) = (trial for trial in own if trial["trial"] == int(found["trial"]))
        seconds = math.fsum(trial["seconds"] for trial in own)
        places = count_decimals(trial["value"] for trial in own)
        states = Counter(str(trial["state"]) for trial in own)
        metric = format_title(str(found["metric"] or "value"), found["k"])
        rows.append(
            (
                *map(Cell, (key[1], *(key[at] for at in varying), metric)),
                Cell(format_value(best["value"], places), best["value"]),
                *map(_format, (len(own), *(states[state] for state in _UNFINISHED))),
                Cell(format_duration(seconds), seconds),
                Cell(format_setting(best["settings"])),
                Cell(_name_importances(importances[key])),
            )
        )
    numbers = ("best", "trials", *_UNFINISHED, "time")
    columns = make_columns((*heads, *numbers, "chosen settings", "importance"), numeric=numbers)
    return Table("Searches", columns, tuple(rows), _NOTES) if rows else None


def _name_importances(shares: Mapping[str, float]) -> str:
    """Return the settings by the share of the variance that each explains, if it is known."""
    known = {name: share for name, share in shares.items() if not math.isnan(share)}
    ranked = sorted(known, key=lambda name: -known[name])
    return ", ".join(f"{name} {format_value(known[name], 2)}" for name in ranked) or "not known"


def read_trials(run: RunTables) -> list[dict[str, Any]]:
    """Return the rows of ``trials.csv`` with the settings as a mapping.

    Raises:
        MissingRun: It is not a file that a run writes.
    """
    rows = [] if run.trials is None else to_records(run.trials)
    try:
        return [row | {"settings": dict(json.loads(row["settings"]))} for row in rows]
    except (ValueError, KeyError, TypeError) as error:
        path = str(run.folder / "trials.csv")
        message = f"its settings cannot be read: {error}"
        raise MissingRun(message, where=path, remedy=REMEDY) from error
