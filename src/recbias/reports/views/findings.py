"""What a run says, in sentences, and what was measured, in figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recbias.reports.markup import one_line, without_folders
from recbias.reports.views.comparisons import Comparisons, beaten, comparisons, in_words
from recbias.reports.views.definitions import (
    Definition,
    accuracy_metric,
    definitions,
    popularity_metric,
)
from recbias.reports.views.grid import Cell, Table
from recbias.reports.views.rounding import count, duration
from recbias.reports.views.run_tables import RunTables
from recbias.reports.views.wide_tables import summary

_AMONG: Mapping[str, str] = {
    "higher": "the highest",
    "lower": "the lowest",
    "zero": "the one nearest to 0",
}

_BEFORE = "interactions_before_"


@dataclass(frozen=True)
class Fact:
    """Something that was measured or set.

    Args:
        name: What it is.
        said: Its value.
    """

    name: str
    said: str


def findings(run: RunTables) -> list[str]:
    """Return a few sentences: who is best, by how sure a margin, and how many differ."""
    table = summary(run)
    known = definitions(run)
    shown = [accuracy_metric(known.values()), popularity_metric(known.values())]
    if not any(shown):
        shown = [next((each for each in known.values() if each.direction != "none"), None)]
    found = comparisons(run)
    said = [_best(table, each, found) for each in shown if each and each.direction != "none"]
    of_models = [each for each in found if each.of_models]
    total = sum(len(each.rows) for each in of_models)
    if total:
        sure = sum(each.significant for each in of_models)
        methods = in_words(of_models)
        comparisons_ = count(total, "comparison")
        said.append(f"{sure:,} of {comparisons_} shown here are significant ({methods}).")
    said += _inside(found)
    return [each for each in said if each]


def _inside(found: Sequence[Comparisons]) -> Iterator[str]:
    """Yield how many tests inside models are significant, a sentence for each kind of sides."""
    kinds: dict[str, list[Comparisons]] = {}
    for each in found:
        if not each.of_models:
            kinds.setdefault(each.between, []).append(each)
    for between, several in kinds.items():
        sure = sum(each.significant for each in several)
        total = count(sum(len(each.rows) for each in several), "test")
        methods = in_words(several)
        verb = "is" if sure == 1 else "are"
        yield f"{sure:,} of {total} between {between} {verb} significant ({methods})."


def _best(table: Table, known: Definition, found: Sequence[Comparisons]) -> str:
    titles = [each.title for each in table.columns]
    if known.title not in titles:
        return ""
    at, named = titles.index(known.title), titles.index("model")
    rows = [row for row in table.rows if row[:named] == table.rows[0][:named]]
    winners = [row for row in rows if row[at].best]
    if not winners or len(rows) < 2:
        return ""
    names = " and ".join(one_line(row[named].text) for row in winners)
    cell = winners[0][at]
    interval = f" (95% interval {cell.interval})" if cell.interval else ""
    place = rows[0][0].text if named else ""
    here = [each for each in found if each.title == known.title and place in {"", each.place[0]}]
    sure = _margin(winners, named, here)
    where = f" on {one_line(rows[0][0].text)}" if named else ""
    verb = "have" if len(winners) > 1 else "has"
    return (
        f"{names} {verb} the best {known.title}{where}, {_AMONG[known.direction]} of "
        f"{count(len(rows), 'model')}: {cell.text}{interval}{sure}."
    )


def _margin(winners: Sequence[tuple[Cell, ...]], named: int, found: Sequence[Comparisons]) -> str:
    tested = [each for each in found if each.of_models and not each.part]
    if not tested or len(winners) > 1:
        return ""
    wins = beaten(tested[0])
    name = winners[0][named].text
    others = len(wins) - 1
    if name not in wins or others < 1:
        return ""
    many = len(wins[name])
    if many == others:
        return ", significantly better than every other"
    return f", significantly better than {many} of the {others} others"


def measured(run: RunTables) -> list[Fact]:
    """Return what was measured: data, queries, split, list length."""
    facts = []
    for each in run.manifest.get("datasets", []):
        counts = each.get("counts") or {}
        said = ", ".join(_counted(counts))
        facts.append(
            Fact("Dataset", f"{each.get('label')}: {said}" if said else each.get("label"))
        )
        before = [number for name, number in counts.items() if name.startswith(_BEFORE)]
        facts += [Fact("Before the filters", f"{number:,} interactions") for number in before[:1]]
        facts += _filters(run.spec, each.get("label"))
    facts += [_asked(each, run) for each in run.manifest.get("queries", [])]
    limit = run.manifest.get("limit")
    if limit:
        facts.append(Fact("A try", f"only the first {limit:,} queries were asked (--limit)"))
    spec = run.spec
    facts += [Fact(key.capitalize(), phrase(spec[key])) for key in ("split",) if spec.get(key)]
    if spec.get("k"):
        facts.append(Fact("List length k", str(spec["k"])))
    seeds = run.manifest.get("seeds") or []
    if seeds:
        facts.append(Fact("Seeds" if len(seeds) > 1 else "Seed", ", ".join(map(str, seeds))))
    return facts


def _counted(counts: Mapping[str, int]) -> list[str]:
    shown = {name: number for name, number in counts.items() if not name.startswith(_BEFORE)}
    return [f"{number:,} {name.replace('_', ' ')}" for name, number in shown.items() if number]


def _asked(each: Mapping[str, Any], run: RunTables) -> Fact:
    several = len(run.manifest.get("queries", [])) > 1
    where = run.spec.get("queries")
    settings = where.items() if isinstance(where, dict) else ()
    said = [
        count(each.get("asked", 0), each.get("unit", "query")),
        f"of {each.get('dataset')}" if several else "",
        phrase({key: value for key, value in settings if key != "name"}),
    ]
    return Fact("Asked", " ".join(filter(None, said)))


def _filters(spec: Mapping[str, Any], label: object) -> list[Fact]:
    given = spec.get("dataset")
    listed = given if isinstance(given, list) else [given]
    for each in listed:
        if isinstance(each, dict) and (len(listed) == 1 or each.get("label") == label):
            filters = each.get("filters")
            return [Fact("Filters", phrase(filters))] if filters else []
    return []


def phrase(value: object) -> str:
    """Return a part of a spec in words: a plug-in's name with its settings behind it.

    >>> phrase([{"name": "threshold", "at_least": 4}, "deduplicate"])
    'threshold (at least 4), deduplicate'
    """
    if isinstance(value, dict):
        name = str(value.get("name", ""))
        rest = [
            f"{str(key).replace('_', ' ')} {phrase(each)}"
            for key, each in value.items()
            if key != "name" and each not in (None, [])
        ]
        return f"{name} ({', '.join(rest)})" if name and rest else name or ", ".join(rest)
    if isinstance(value, list):
        return ", ".join(map(phrase, value))
    return f"{value:g}" if isinstance(value, float) else str(without_folders(str(value)))


def made(run: RunTables) -> list[Fact]:
    """Return how the run was made: version, time, memory, platform."""
    manifest = run.manifest
    seconds, memory = manifest.get("seconds"), manifest.get("peak_memory_mb")
    said = {
        "recbias": manifest.get("recbias"),
        "Run": manifest.get("run_id"),
        "Started": manifest.get("started"),
        "Took": duration(seconds) if isinstance(seconds, (int, float)) else None,
        "Peak memory": f"{memory:,.0f} MB" if isinstance(memory, (int, float)) else None,
        "Spec digest": manifest.get("spec_digest"),
        "Commit": manifest.get("commit"),
        "Python": manifest.get("python"),
        "Platform": manifest.get("platform"),
    }
    return [Fact(name, str(value)) for name, value in said.items() if value]


def failures(run: RunTables) -> list[str]:
    """Return each failure in a line: stage, what happened, what would do."""
    said = []
    for each in run.manifest.get("failures", []):
        help_ = f" Help: {each['help']}" if each.get("help") else ""
        said.append(f"{each.get('stage', 'a stage')} failed: {each.get('message', '')}.{help_}")
    return [one_line(each) for each in said]


def warnings(run: RunTables) -> list[str]:
    """Return the warnings of the run; what several stages warn of alike is said once."""
    said: dict[str, list[str]] = {}
    for each in dict.fromkeys(map(one_line, run.manifest.get("warnings", []))):
        stage, _, rest = each.partition(": ")
        said.setdefault(rest or stage, []).append(each)
    return [
        f"{rest} ({len(lines)} stages)" if len(lines) > 1 else lines[0]
        for rest, lines in said.items()
    ]
