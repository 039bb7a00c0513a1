"""Tables and sentences on the replies of language models and on hyperparameter searches."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from recbias.core.errors import MissingRun
from recbias.core.files import has_file, open_input
from recbias.core.measures import FIT_COLUMNS, Direction
from recbias.core.text import MAX_VALUE_LENGTH, make_printable
from recbias.reports.run import REMEDY, RunTables, to_records
from recbias.reports.views import DIRECTION_LABELS, format_title
from recbias.reports.wording import (
    Cell,
    Column,
    Table,
    count_decimals,
    format_duration,
    format_setting,
    format_value,
    is_number,
    make_columns,
)

# how a reply ended; only a complete one has text to read
_OUTCOMES = ("complete", "length", "refusal", "empty", "failed")

# the reasons for which a title of a reply matches no item
_UNMATCHED = ("unknown", "format", "newer")

MAX_TITLES = 15
"""The largest number of unmatched titles of a model."""

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

_COUNTS = ("replies", *_OUTCOMES, "stored before", "tokens in", "tokens out")


@dataclass
class _ReplyCounts:
    """The replies to one model on one dataset."""

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
            if rank["title"] and rank["outcome"] in _UNMATCHED:
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
    replies = {keys[-len(heads) :]: replies for keys, replies in counts.items()}
    labels = _collect_labels(run)
    tables = [
        _tabulate(
            "Replies",
            heads,
            _COUNTS,
            {key: {name: each.counts[name] for name in _COUNTS} for key, each in replies.items()},
        ),
        _tabulate(
            "Repeatability of the replies",
            heads,
            tuple(_REPEATS),
            _count_repeats(run, heads),
            "Requests sent once more, unchanged. Same titles: at least one, in the same order.",
        ),
        _tabulate(
            "Commonest titles without a matching item",
            (*heads, "title", "reason"),
            ("count",),
            {
                (*key, make_printable(each.spellings[words], MAX_VALUE_LENGTH), reason): {
                    "count": count
                }
                for key, each in replies.items()
                for (words, reason), count in each.titles.most_common(MAX_TITLES)
            },
            f"At most {MAX_TITLES} a model; all replies are in responses.jsonl.",
        ),
        _tabulate(
            "Labels by language models",
            ("stage",),
            ("replies", *_READINGS.values()),
            {
                (stage,): {"replies": sum((found := _select(facts, "readings")).values())}
                | {name: found.get(cause, 0) for cause, name in _READINGS.items()}
                for stage, facts in labels.items()
            },
            "How each reply was read, or why not; all of them are in label_replies.jsonl.",
        ),
        _tabulate(
            "Agreement between samples",
            ("stage", "kind"),
            tuple(_AGREEMENT.values()),
            {
                (stage, kind): {
                    name: math.nan if (x := found.get(f"{kind}.{key}")) is None else float(x)
                    for key, name in _AGREEMENT.items()
                }
                for stage, facts in labels.items()
                for found in [_select(facts, "agreement")]
                for kind in dict.fromkeys(name.rpartition(".")[0] for name in found)
            },
            "Of several samples of one text. Alpha is Krippendorff's.",
        ),
    ]
    return [table for table in tables if table.rows]


def _tabulate(
    title: str,
    heads: Sequence[str],
    names: Sequence[str],
    rows: Mapping[tuple[str, ...], Mapping[str, float | None]],
    *notes: str,
) -> Table:
    """Return a table of numbers by what heads their rows; one that is not known is blank."""
    cells = tuple(
        (*map(Cell, key), *(_format(numbers.get(name)) for name in names))
        for key, numbers in rows.items()
    )
    return Table(title, make_columns((*heads, *names), numeric=names), cells, notes)


def _format(value: float | None) -> Cell:
    """Return a count, a share, or a blank cell for what is not known."""
    if value is None:
        return Cell("")
    return Cell(f"{value:,}" if isinstance(value, int) else format_value(value, 3), value)


def _count_repeats(run: RunTables, heads: tuple[str, ...]) -> dict[tuple[str, ...], Counter[str]]:
    """Return how many requests were sent once more, and how many replies were the same."""
    counts: dict[tuple[str, ...], Counter[str]] = {}
    for stage in run.manifest.get("stages", []):
        facts = stage.get("facts") or {}
        if stage.get("kind") == "answer" and facts.get(_REPEATS["repeated"]):
            keys = tuple(str(stage.get(name)) for name in heads)
            numbers = {name: facts[fact] for name, fact in _REPEATS.items() if fact in facts}
            counts.setdefault(keys, Counter()).update(numbers)
    return counts


def _count_replies(path: Path) -> dict[tuple[str, str], _ReplyCounts]:
    """Return the counts by dataset and model, over seeds and folds; texts alone are no replies."""
    counts: dict[tuple[str, str], _ReplyCounts] = {}
    for number, line in enumerate(_read_lines(path), 1):
        try:
            entry = json.loads(line)
            if entry["outcome"] is not None:
                counts.setdefault((entry["dataset"], entry["model"]), _ReplyCounts()).add(entry)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            message = f"line {number} is not a reply as `recbias run` writes it"
            raise MissingRun(message, where=str(path), remedy=REMEDY) from error
    return counts


def _read_lines(path: Path) -> Iterator[bytes]:
    if has_file(path):
        with open_input(path) as stream:
            yield from stream


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


_Key: TypeAlias = tuple[str, ...]  # dataset, model, seed and fold


_UNFINISHED = ("pruned", "excluded", "failed")  # the states of trials that cannot be chosen

_SEARCH_NOTE = "Values are scores on the validation set, which the settings are chosen by."
# the notes of marks in the table of trials
_NOTES = {
    "pruned": "p: pruned, because its score was below the median of the earlier trials; the value "
    "is the validation nDCG@10 after its last epoch.",
    "excluded": "e: excluded, because the perplexity increased too much.",
}


@dataclass(frozen=True, eq=False)
class Search:
    """A hyperparameter search: the rows of its trials in order, and the number of the best.

    The title is the model, and what distinguishes the search from the others of the run. A trial
    may be ``done``, ``pruned``, ``excluded`` or ``failed``; the value of a pruned one is the score
    that it was pruned by, and its seconds are 0 if its settings had been evaluated before. The
    importance of a setting is NaN if it cannot be determined.
    """

    title: str
    metric: str
    direction: Direction
    best: int
    trials: Sequence[Mapping[str, Any]]
    importances: Mapping[str, float]

    @property
    def chosen(self) -> Mapping[str, Any]:
        """The best trial."""
        return next(trial for trial in self.trials if trial["trial"] == self.best)

    def count(self, state: str) -> int:
        """Return the number of trials in a state."""
        return sum(trial["state"] == state for trial in self.trials)

    def format(self, value: float) -> str:
        """Return a validation score."""
        return format_value(value, count_decimals(trial["value"] for trial in self.trials))

    @property
    def summary(self) -> str:
        """The result: ``nDCG@10 0.3412 in trial 17 of 20``."""
        best = self.format(self.chosen["value"])
        return f"{self.metric} {best} in trial {self.best} of {len(self.trials):,}"

    @property
    def sentence(self) -> str:
        """The result and the chosen settings."""
        counts = {state: self.count(state) for state in ("done", *_UNFINISHED)}
        outcomes = ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)
        direction = f" ({DIRECTION_LABELS[self.direction]})" if self.direction != "none" else ""
        place = f"trial {self.best} of {len(self.trials):,} ({outcomes})"
        best, settings = self.format(self.chosen["value"]), format_setting(self.chosen["settings"])
        return f"Validation {self.metric}{direction}: {best} in {place}, with {settings}."

    @property
    def importance(self) -> str:
        """The share of the variation that each setting explains, or why it is unknown."""
        scored = self.count("done") + self.count("pruned")
        known = {key: share for key, share in self.importances.items() if not math.isnan(share)}
        if not known:
            return (
                "The importance of the settings cannot be determined: too few trials have a score "
                f"({scored:,}), or all scores are equal."
            )
        ranked = sorted(known, key=lambda key: -known[key])
        return (
            f"Importance of the settings, the share of the variance over {scored:,} trials that "
            "each explains by itself (functional ANOVA of a random forest): "
            f"{', '.join(f'{key} {format_value(known[key], 2)}' for key in ranked)}."
        )

    @property
    def table(self) -> Table:
        """One row per trial, with a column for each setting."""
        names = [*self.chosen["settings"]]
        values = {name: [trial["settings"].get(name) for trial in self.trials] for name in names}
        epochs = ["epochs"] * any(trial.get("epochs", 0) > 0 for trial in self.trials)
        columns = (
            Column("trial"),
            Column(self.metric, numeric=True, direction=self.direction),
            *(Column(name, numeric=all(map(is_number, values[name]))) for name in names),
            Column("outcome"),
            *(Column(name, numeric=True) for name in (*epochs, "time")),
        )
        rows = tuple(self._tabulate(trial, names, epochs) for trial in self.trials)
        notes = tuple(note for state, note in _NOTES.items() if self.count(state))
        return Table(f"Trials of {self.title}", columns, rows, notes)

    def _tabulate(
        self, trial: Mapping[str, Any], names: Sequence[str], epochs: Sequence[str]
    ) -> tuple[Cell, ...]:
        state, is_best = trial["state"], trial["trial"] == self.best
        text = "" if state == "failed" else self.format(trial["value"])
        is_done = state == "done"
        return (
            Cell(f"{trial['trial']:.0f}"),
            Cell(
                text,
                trial["value"] if is_done else math.nan,
                best=is_best,
                mark=state[0] if text and not is_done else "",
            ),
            *(_tabulate_setting(trial["settings"].get(name)) for name in names),
            Cell("best" if is_best else state),
            *(Cell(f"{trial[n]:,.0f}" if trial[n] > 0 else "", trial[n]) for n in epochs),
            Cell(
                format_duration(trial["seconds"]) if trial["seconds"] else "repeated",
                trial["seconds"],
            ),
        )


def collect_searches(run: RunTables) -> tuple[Search, ...]:
    """Return the searches of a run in its order.

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
    titles = _build_titles([*trials])
    return tuple(
        Search(
            title=titles[key],
            metric=format_title(str(outcomes[key]["metric"] or "value"), outcomes[key]["k"]),
            direction=outcomes[key]["direction"] or "none",
            best=int(outcomes[key]["trial"]),
            trials=rows,
            importances=importances[key],
        )
        for key, rows in trials.items()
    )


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


def _get_key(row: Mapping[str, Any]) -> _Key:
    return tuple(str(row[column]) for column in FIT_COLUMNS)


def _build_titles(keys: Sequence[_Key]) -> dict[_Key, str]:
    """Return the model of each search, with its dataset, seed and fold where these vary."""
    prefixes = {0: "", 2: "seed ", 3: "fold "}
    varying = [at for at in prefixes if len({key[at] for key in keys}) > 1]
    return {
        key: ", ".join([key[1], *(f"{prefixes[at]}{key[at]}" for at in varying)]) for key in keys
    }


def tabulate_searches(searches: Sequence[Search]) -> Table:
    """Return one row per search: the metric, the best score and the chosen settings."""
    states = [
        state
        for state in _UNFINISHED
        if state != "excluded" or any(search.count(state) for search in searches)
    ]
    numbers = ("best", "trials", *states, "time")
    columns = make_columns(("model", "metric", *numbers, "chosen settings"), numeric=numbers)
    rows = []
    for search in searches:
        seconds = math.fsum(trial["seconds"] for trial in search.trials)
        counts = (len(search.trials), *map(search.count, states))
        best = search.chosen["value"]
        rows.append(
            (
                *map(Cell, (search.title, search.metric)),
                Cell(search.format(best), best),
                *map(_format, counts),
                Cell(format_duration(seconds), seconds),
                Cell(format_setting(search.chosen["settings"])),
            )
        )
    return Table("Searches", columns, tuple(rows), (_SEARCH_NOTE,))


def _tabulate_setting(value: Any) -> Cell:
    if is_number(value):
        text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
        return Cell(text, float(value))
    return Cell("none" if value is None else format_setting(value))
