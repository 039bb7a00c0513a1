"""Tables and sentences on the replies of language models and on hyperparameter searches."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from recbias.core.errors import MissingRun
from recbias.core.files import has_file, open_input
from recbias.core.measures import FIT_COLUMNS, Direction
from recbias.core.text import MAX_VALUE_LENGTH, make_printable
from recbias.reports.run import REMEDY, RunTables, to_records
from recbias.reports.tables import is_number
from recbias.reports.views import DIRECTION_LABELS, format_title
from recbias.reports.wording import (
    Cell,
    Column,
    Table,
    count_decimals,
    format_duration,
    format_value,
    formlocate_errors,
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
    tables = [
        _tabulate_outcomes(counts, heads),
        _tabulate_repeats(run, heads),
        _tabulate_titles(counts, heads),
        _tabulate_readings(run),
        _tabulate_agreement(run),
    ]
    return [table for table in tables if table.rows]


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


def _tabulate_outcomes(
    counts: Mapping[tuple[str, str], _ReplyCounts], heads: tuple[str, ...]
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
        if stage.get("kind") == "answer" and facts.get(_REPEATS["repeated"]):
            keys = tuple(str(stage.get(name)) for name in heads)
            numbers = {name: facts[fact] for name, fact in _REPEATS.items() if fact in facts}
            counts.setdefault(keys, Counter()).update(numbers)
    rows = tuple(
        (
            *map(Cell, keys),
            *(
                Cell(f"{numbers[name]:,}", numbers[name]) if name in numbers else Cell("")
                for name in _REPEATS
            ),
        )
        for keys, numbers in counts.items()
    )
    columns = make_columns((*heads, *_REPEATS), numeric=tuple(_REPEATS))
    note = "Requests sent once more, unchanged. Same titles: at least one, in the same order."
    return Table("Repeatability of the replies", columns, rows, (note,))


def _tabulate_titles(
    counts: Mapping[tuple[str, str], _ReplyCounts], heads: tuple[str, ...]
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
        numbers = [counts.total(), *(counts[name] for name in _READINGS)]
        rows.append((Cell(stage), *(Cell(f"{number:,}", number) for number in numbers)))
    titles = ("replies", *_READINGS.values())
    note = "How each reply was read, or why not; all of them are in label_replies.jsonl."
    columns = make_columns(("stage", *titles), numeric=titles)
    return Table("Labels by language models", columns, tuple(rows), (note,))


def _tabulate_agreement(run: RunTables) -> Table:
    rows = []
    for stage, facts in _collect_labels(run).items():
        agreement = _select(facts, "agreement")
        for kind in dict.fromkeys(name.rpartition(".")[0] for name in agreement):
            values = [agreement.get(f"{kind}.{name}") for name in _AGREEMENT]
            numbers = [math.nan if value is None else float(value) for value in values]
            rows.append(
                (*map(Cell, (stage, kind)), *(Cell(format_value(x, 3), x) for x in numbers))
            )
    titles = tuple(_AGREEMENT.values())
    note = "Of several samples of one text. Alpha is Krippendorff's."
    columns = make_columns(("stage", "kind", *titles), numeric=titles)
    return Table("Agreement between samples", columns, tuple(rows), (note,))


_Key: TypeAlias = tuple[str, ...]  # dataset, model, seed and fold


_UNFINISHED = ("pruned", "excluded", "failed")  # the states of trials that cannot be chosen

_SEARCH_NOTE = "Values are scores on the validation set, which the settings are chosen by."
# the notes of marks in the table of trials
_NOTES = {
    "pruned": "p: pruned, because its score was below the median of the earlier trials; the value "
    "is the validation nDCG@10 after its last epoch.",
    "excluded": "e: excluded, because the perplexity increased too much.",
}


@dataclass(frozen=True)
class Trial:
    """A trial of a search, ``done``, ``pruned``, ``excluded`` or ``failed``.

    Numbers start at 1. The value is the validation score; of a pruned trial the score that it was
    pruned by. The duration is 0 if the same settings had been evaluated before. ``epochs`` is the
    epoch after which it was evaluated, 0 if it has no epochs.
    """

    number: int
    settings: Mapping[str, Any]
    value: float
    state: str
    seconds: float
    epochs: int


@dataclass(frozen=True, eq=False)
class Search:
    """A hyperparameter search: its trials in order, and the number of the best.

    The title is the model, and what distinguishes the search from the others of the run. The
    importance of a setting is NaN if it cannot be determined.
    """

    metric: str
    direction: Direction
    best: int
    trials: tuple[Trial, ...]
    importances: Mapping[str, float]
    title: str

    @cached_property
    def done(self) -> list[Trial]:
        """The trials that were evaluated completely."""
        return [trial for trial in self.trials if trial.state == "done"]

    @cached_property
    def chosen(self) -> Trial:
        """The best trial."""
        return next(trial for trial in self.trials if trial.number == self.best)

    @property
    def places(self) -> int:
        """The number of decimals of the validation scores."""
        return count_decimals(trial.value for trial in self.trials)

    def count(self, state: str) -> int:
        """Return the number of trials in a state."""
        return sum(trial.state == state for trial in self.trials)


def collect_searches(run: RunTables) -> tuple[Search, ...]:
    """Return the searches of a run in its order.

    Raises:
        MissingRun: ``trials.csv`` is not a file that a run writes.
    """
    outcomes = {_get_key(search): search for search in run.manifest.get("searches", [])}
    trials: dict[_Key, list[Trial]] = defaultdict(list)
    for row in read_trials(run):
        if _get_key(row) in outcomes:
            epochs = row.get("epochs", math.nan)
            values = {name: row[name] for name in ("settings", "value", "state", "seconds")}
            epoch = 0 if math.isnan(epochs) else int(epochs)
            trials[_get_key(row)].append(Trial(int(row["trial"]), epochs=epoch, **values))
    importances: dict[_Key, dict[str, float]] = defaultdict(dict)
    for row in to_records(run.importances) if run.importances is not None else ():
        importances[_get_key(row)][str(row["setting"])] = row["importance"]
    titles = _build_titles([*trials])
    searches = []
    for key, rows in trials.items():
        k, direction = outcomes[key].get("k"), outcomes[key].get("direction")
        metric = str(outcomes[key].get("metric") or "value")
        searches.append(
            Search(
                metric=format_title(metric, None if k is None else float(k)),
                direction=next((name for name in DIRECTION_LABELS if name == direction), "none"),
                best=int(outcomes[key]["trial"]),
                trials=tuple(rows),
                importances=importances[key],
                title=titles[key],
            )
        )
    return tuple(searches)


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


def tabulate_searches(searches: Iterable[Search]) -> Table:
    """Return one row per search: the metric, the best score and the chosen settings."""
    searches = [*searches]
    rare = {"excluded"} - {trial.state for search in searches for trial in search.trials}
    states = [state for state in _UNFINISHED if state not in rare]
    numbers = ("best", "trials", *states, "time")
    columns = make_columns(("model", "metric", *numbers, "chosen settings"), numeric=numbers)
    rows = tuple(_tabulate_search(search, states) for search in searches)
    return Table("Searches", columns, rows, (_SEARCH_NOTE,))


def _tabulate_search(search: Search, states: Sequence[str]) -> tuple[Cell, ...]:
    seconds = math.fsum(trial.seconds for trial in search.trials)
    counts = (len(search.trials), *map(search.count, states))
    return (
        Cell(search.title),
        Cell(search.metric),
        Cell(format_value(search.chosen.value, search.places), search.chosen.value),
        *(Cell(f"{count:,}", float(count)) for count in counts),
        Cell(format_duration(seconds), seconds),
        Cell(formlocate_errors(dict(search.chosen.settings))),
    )


def tabulate_trials(search: Search) -> Table:
    """Return one row per trial, with a column for each setting."""
    names = list(search.chosen.settings)
    numeric = {
        name: all(is_number(trial.settings.get(name)) for trial in search.trials) for name in names
    }
    has_epochs = any(trial.epochs for trial in search.trials)
    columns = (
        Column("trial"),
        Column(search.metric, numeric=True, direction=search.direction),
        *(Column(name, numeric=numeric[name]) for name in names),
        Column("outcome"),
        *([Column("epochs", numeric=True)] if has_epochs else []),
        Column("time", numeric=True),
    )
    rows = [_tabulate_trial(search, trial, names, has_epochs) for trial in search.trials]
    notes = tuple(note for state, note in _NOTES.items() if search.count(state))
    return Table(f"Trials of {search.title}", columns, tuple(rows), notes)


def _tabulate_trial(
    search: Search, trial: Trial, names: Sequence[str], has_epochs: object
) -> tuple[Cell, ...]:
    best, done = trial.number == search.best, trial.state == "done"
    text = "" if trial.state == "failed" else format_value(trial.value, search.places)
    value = trial.value if done else math.nan
    epochs = Cell(f"{trial.epochs:,}" if trial.epochs else "", trial.epochs)
    duration = format_duration(trial.seconds) if trial.seconds else "repeated"
    return (
        Cell(f"{trial.number}"),
        Cell(text, value, best=best, mark=trial.state[0] if text and not done else ""),
        *(_tabulate_setting(trial.settings.get(name)) for name in names),
        Cell("best" if best else trial.state),
        *([epochs] if has_epochs else []),
        Cell(duration, trial.seconds),
    )


def _tabulate_setting(value: Any) -> Cell:
    if is_number(value):
        text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
        return Cell(text, float(value))
    return Cell("none" if value is None else formlocate_errors(value))


def summarize_search(search: Search) -> str:
    """Return the result of a search: ``nDCG@10 0.3412 in trial 17 of 20``."""
    best = format_value(search.chosen.value, search.places)
    return f"{search.metric} {best} in trial {search.best} of {len(search.trials):,}"


def describe_search(search: Search) -> str:
    """Return the result of a search and its settings as a sentence."""
    counts = {state: search.count(state) for state in ("done", *_UNFINISHED)}
    outcomes = ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)
    settings = formlocate_errors(dict(search.chosen.settings))
    known = search.direction != "none"
    direction = f" ({DIRECTION_LABELS[search.direction]})" if known else ""
    best, n_trials = format_value(search.chosen.value, search.places), len(search.trials)
    place = f"trial {search.best} of {n_trials:,} ({outcomes})"
    return f"Validation {search.metric}{direction}: {best} in {place}, with {settings}."


def describe_importances(search: Search) -> str:
    """Return the share of the variation that each setting explains, or why it is unknown."""
    scored = len(search.done) + search.count("pruned")
    known = {key: share for key, share in search.importances.items() if not math.isnan(share)}
    if not known:
        return (
            "The importance of the settings cannot be determined: too few trials have a score "
            f"({scored:,}), or all scores are equal."
        )
    shares = ", ".join(
        f"{key} {format_value(known[key], 2)}"
        for key in sorted(known, key=lambda key: -known[key])
    )
    return (
        f"Importance of the settings, the share of the variance over {scored:,} trials that each "
        f"explains by itself (functional ANOVA of a random forest): {shares}."
    )
