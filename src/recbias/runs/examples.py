"""The users, prompts or sentences that a metric is worst for: their history, lists and misses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, Attributes, Dataset, Interactions, Split
from recbias.core.errors import MissingEvidence, UnknownName
from recbias.core.queries import Queries
from recbias.core.text import normalize_name, suggest
from recbias.reports.run import RunTables, read_run
from recbias.reports.views import format_title
from recbias.runner.store import Store
from recbias.runs.tables import Run, load

_KEYS = ("dataset", "seed", "fold")

_UNIT = ("unit_id", "group", "target")

EXAMPLE_COLUMNS = (
    *_KEYS,
    *("unit", "unit_id", "labels", "text", "history"),
    *("model", "metric", "k", "group", "target", "value", "list", "missed"),
)
"""The columns of ``examples``."""


def examples(
    run: Run | Path | str,
    *,
    metric: str | None = None,
    group: str = "",
    worst: int = 10,
    models: Sequence[str] = (),
    out: Path | str = "results",
) -> pd.DataFrame:
    """Return the users, prompts or sentences for which a metric is worst, with their lists.

    Only the first dataset, seed and fold of a run are read. Histories and test items come from the
    stored stages of the run; where these are gone, they are empty, with a warning.

    Args:
        run: A run, a run folder, or the name of an experiment.
        metric: A metric with a value for each unit, such as ``nDCG`` or ``nDCG@5``; by default the
            first of the run. Of one that is best at 0, or has no better and worse, the values that
            are farthest from 0 are the worst.
        group: Only units with these labels: ``gender=F``, ``gender=F&age=25``.
        worst: The number of units.
        models: The models whose lists are shown; the first one selects the units. By default the
            two with the best means.
        out: The folder in which experiments are looked up by name.

    Returns:
        A row for each unit and model, with ``EXAMPLE_COLUMNS``. ``history`` (the latest item
        first), ``list`` and ``missed`` (test items that are not in the list) are tuples of titles,
        or of ids where the items have no titles.

    Raises:
        MissingEvidence: The run has no values of single units, or no labels.
        UnknownName: The run has no such metric, model, label or value of a label.

    Example:
        recbias.examples("quickstart", group="gender=f", worst=3)[["unit_id", "value", "missed"]]
    """
    tables = read_run((run if isinstance(run, Run) else load(run, out)).folder)
    scores, direction = select_scores(tables, metric)
    keys = {key: scores[key].iloc[0] for key in _KEYS}
    for key, value in keys.items():
        scores = scores[scores[key] == value]
    stages = Stages(tables, keys)
    losses = {"higher": -scores["value"], "lower": scores["value"]}
    scores = scores.assign(loss=losses.get(direction, scores["value"].abs()))
    chosen = choose_models(scores, models)
    first = scores[scores["model"] == chosen[0]]
    if group:
        first = first[first["unit_id"].isin(stages.list_members(group))]
        if first.empty:
            message = f"no unit with {group} has a value of {scores['metric'].iloc[0]}"
            raise MissingEvidence(message, where="--group")
    ordered = first.sort_values("loss", ascending=False, kind="stable")
    rows = [
        stages.describe(unit, scores[(scores[list(_UNIT)] == unit).all(axis=1)], model)
        for unit in ordered.drop_duplicates("unit_id")[list(_UNIT)].head(worst).to_numpy()
        for model in chosen
    ]
    known = [row for row in rows if row]
    return pd.DataFrame(known, columns=list(EXAMPLE_COLUMNS))


def select_scores(tables: RunTables, metric: str | None) -> tuple[pd.DataFrame, str]:
    """Return the values of the units by a metric, and its direction."""
    per_unit = tables.per_unit
    if per_unit is None or per_unit.empty:
        raise MissingEvidence("no metric of the run has a value for each user, prompt or sentence")
    for name in ("dataset", "model", "unit", "unit_id", "metric", "group", "target"):
        per_unit[name] = per_unit[name].astype(str)
    titles = [format_title(*pair) for pair in zip(per_unit["metric"], per_unit["k"], strict=True)]
    known = list(dict.fromkeys(titles))
    wanted = known[0] if metric is None else _find(metric, known, "metric")
    rows = per_unit[np.array(titles) == wanted].dropna(subset=["value"])
    is_whole = (rows["group"] == "") & (rows["target"] == "")
    rows = rows[is_whole] if is_whole.any() else rows
    name = str(rows["metric"].iloc[0])
    definitions = {entry["metric"]: entry for entry in tables.manifest["metrics"]}
    return rows, str(definitions.get(name, {}).get("direction", "none"))


def _find(name: str, known: Sequence[str], kind: str) -> str:
    for title in known:
        if normalize_name(name) in {
            normalize_name(title),
            normalize_name(title.partition("@")[0]),
        }:
            return title
    message = f"the run has no {kind} {name!r} with values of single units"
    raise UnknownName(message, where=f"--{kind}", remedy=suggest(name, known))


def choose_models(scores: pd.DataFrame, models: Sequence[str]) -> list[str]:
    """Return the models that are named, or the two with the best means."""
    means = scores.groupby("model", sort=False)["loss"].mean().sort_values(kind="stable")
    if not models:
        return list(means.index[:2])
    return [_find(model, list(means.index), "model") for model in models]


class Stages:
    """What is known of the units of one dataset, seed and fold: labels, histories and titles."""

    def __init__(self, tables: RunTables, keys: Mapping[str, Any]) -> None:
        self.keys = keys
        store = Store(tables.folder.parent.parent / "store")
        digests = {
            str(stage["kind"]): str(stage["digest"])
            for stage in reversed(tables.manifest["stages"])
            if stage["dataset"] == keys["dataset"]
            and stage["seed"] in {None, keys["seed"]}
            and stage["fold"] in {None, keys["fold"]}
        }
        dataset, split, queries = (
            store.load(digests[kind]) if kind in digests and store.has(digests[kind]) else None
            for kind in ("dataset", "split", "queries")
        )
        self.dataset: Dataset | None = dataset
        self.split: Split | None = split
        self.queries: Queries | None = queries
        if None in (dataset, split, queries):
            warn("the stored stages of the run are gone: run its spec again for the histories")
        self.lists = _index_lists(tables.lists, keys)
        self.titles = _collect_titles(dataset.items if dataset else None)

    def list_members(self, group: str) -> AnyArray:
        """Return the ids of the queries that have all labels of a group: ``gender=F&age=25``."""
        if self.queries is None:
            raise MissingEvidence("the labels of the units are not stored", where="--group")
        labels, selected = self.queries.labels, np.ones(len(self.queries), dtype=bool)
        for part in group.split("&"):
            name, _, value = part.partition("=")
            if name not in labels.names:
                message = f"the {self.queries.unit}s have no label {name!r}"
                raise UnknownName(message, where="--group", remedy=suggest(name, labels.names))
            members = labels.membership(name)
            if value not in members.values:
                message = f"no {self.queries.unit} has {part!r}"
                raise UnknownName(message, where="--group", remedy=suggest(value, members.values))
            column = members.matrix[:, [members.values.index(value)]]
            selected &= column.toarray().ravel()
        return self.queries.ids.ids[selected]

    def describe(self, unit: AnyArray, scores: pd.DataFrame, model: str) -> dict[str, Any]:
        """Return the row of a unit and a model; empty if the model has no value for the unit."""
        of_model = scores[scores["model"] == model]
        if of_model.empty:
            return {}
        name, score = str(unit[0]), of_model.iloc[0]
        row = {column: score[column] for column in EXAMPLE_COLUMNS if column in score.index}
        is_query = self.queries is None or row["unit"] == self.queries.unit
        listed = self.lists.get((model, name), ()) if is_query else ()
        history, relevant = self._read_history(name) if is_query else ((), ())
        missed = tuple(item for item in relevant if item not in set(listed))
        named = {"history": history, "list": listed, "missed": missed}
        titles = {
            key: tuple(self.titles.get(item, item) for item in items)
            for key, items in named.items()
        }
        if row["unit"] == "item":
            return row | titles | {"labels": "", "text": self.titles.get(name, "")}
        return row | titles | self._read_query(name, str(row["unit"]), is_query=is_query)

    def _read_query(self, unit: str, kind: str, *, is_query: bool) -> dict[str, str]:
        """Return the labels and the text of a query, or what the queries of a unit share."""
        if self.queries is None:
            return {"labels": "", "text": ""}
        frame, texts = self.queries.labels.frame, self.queries.texts
        selected = self.queries.ids.ids == unit
        if not is_query:
            name = "pair_id" if kind == "sentence_pair" else kind
            known = frame[name].astype(str) if name in frame else pd.Series("", frame.index)
            selected = (known == unit).to_numpy()
        if not selected.any():
            return {"labels": "", "text": ""}
        cells = {
            str(name): {*map(_render, cells.dropna())} for name, cells in frame[selected].items()
        }
        labels = "&".join(
            f"{name}={values.pop()}" for name, values in cells.items() if len(values) == 1
        )
        return {"labels": labels, "text": "" if texts is None else " / ".join(texts[selected])}

    def _read_history(self, unit: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the training items of a user, the latest first, and the test items."""
        if self.split is None:
            return (), ()
        train, test = self.split.train, self.split.test
        return _list_items(train, unit)[::-1], () if test is None else _list_items(test, unit)


def _list_items(rows: Interactions, user: str) -> tuple[str, ...]:
    """Return the items of a user in the order of time, else of the rows."""
    code = rows.user_ids.find(np.array([user]))[0]
    at = np.flatnonzero(rows.users == code) if code >= 0 else np.empty(0, dtype=np.int64)
    if rows.times is not None:
        at = at[np.argsort(rows.times[at], kind="stable")]
    return tuple(rows.item_ids.ids[rows.items[at]])


def _index_lists(
    lists: pd.DataFrame | None, keys: Mapping[str, Any]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the items of each model and query, best first."""
    if lists is None:
        return {}
    for key, value in keys.items():
        lists = lists[lists[key] == value]
    names = [lists[name].astype(str) for name in ("model", "query_id")]
    items = lists["item_id"].astype(str).groupby(names, sort=False)
    return {(str(model), str(query)): tuple(ids) for (model, query), ids in items}


def _collect_titles(items: Attributes | None) -> dict[str, str]:
    if items is None or "title" not in items.names:
        return {}
    titles = items.column("title")
    return {
        str(item): str(title)
        for item, title in zip(items.ids.ids, titles, strict=True)
        if isinstance(title, str)
    }


def _render(cell: object) -> str:
    return f"{cell:g}" if isinstance(cell, float) else str(cell)
