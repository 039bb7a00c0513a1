"""The users, prompts or sentences that a metric is worst for: their history, lists and misses."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd

from recbias.core.context import collect_warnings, warn
from recbias.core.dataset import AnyArray, Attributes, Dataset, Interactions, Queries, Split
from recbias.core.errors import MissingEvidence, UnknownName
from recbias.core.files import has_file
from recbias.core.grouping import JOIN, group_by, parse_uncertain_label, split_crossing
from recbias.core.text import normalize_name, suggest
from recbias.reports import views
from recbias.reports.run import RunTables, name_values, read_parquet
from recbias.reports.views import format_title
from recbias.runner.store import Store

_KEYS = ("dataset", "seed", "fold")

_UNIT = ("unit_id", "group", "target")

EXAMPLE_COLUMNS = (
    *_KEYS,
    *("unit", "unit_id", "labels", "text", "history"),
    *("model", "metric", "k", "group", "target", "value", "list", "missed", "neutral"),
)
"""The columns of ``examples``."""


TEXTS = ("dataset", "model", "unit", "unit_id", "metric", "group", "target")
"""The columns of the values of units that hold text."""

_MOST_EXAMPLES, _MOST_PROMPTS = 5, 5


def select_examples(
    tables: RunTables,
    metric: str | None,
    group: str = "",
    worst: int = 10,
    models: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Return a row for each unit, or each of its prompts, and model, with ``EXAMPLE_COLUMNS``.

    ``recbias.examples`` describes the arguments and the errors. Each row also has the
    ``relevant`` items of a user, and whether the history is ``ordered`` by time.
    """
    chosen, units, values, stages = _select_units(tables, metric, group, worst, models)
    scores = _select_whole(values)
    kind = str(scores["unit"].iloc[0])
    stages.read_lists([name for unit in units[:, 0] for name in stages.list_queries(unit, kind)])
    rows = (
        stages.describe(unit, scores[(scores[list(_UNIT)] == unit).all(axis=1)], model)
        for unit in units
        for model in chosen
    )
    parts = values[(values["group"] != "") & (values["target"] == "")]
    label = _find_label(tables, str(scores["metric"].iloc[0]))
    return [each for row in rows if row for each in stages.split_prompts(row, parts, label)]


def _select_units(
    tables: RunTables, metric: str | None, group: str, worst: int, models: Sequence[str]
) -> tuple[list[str], AnyArray, pd.DataFrame, Stages]:
    """Return the models, the worst units of the first, their values, and what is known of them."""
    every, direction = _read_scores(tables, metric)
    whole = _select_whole(every)
    keys = {key: whole[key].iloc[0] for key in _KEYS}
    every = every[(every[[*keys]] == [*keys.values()]).all(axis=1)]
    scores = _select_whole(every)
    losses = {"higher": -scores["value"], "lower": scores["value"]}
    scores = scores.assign(loss=losses.get(direction, scores["value"].abs()))
    chosen = choose_models(tables, scores, models)
    first = scores[scores["model"] == chosen[0]]
    stages = Stages(tables, keys)
    if group:
        first = first[first["unit_id"].isin(stages.list_members(group))]
        if first.empty:
            message = f"no unit with {group} has a value of {scores['metric'].iloc[0]}"
            raise MissingEvidence(message, where="--group")
    ordered = first[["loss", *_UNIT]].sort_values("loss", ascending=False, kind="stable")
    units = ordered.drop_duplicates("unit_id")[list(_UNIT)].head(worst).astype(str).to_numpy()
    values = every[every["unit_id"].isin(units[:, 0])].astype(dict.fromkeys(TEXTS, str))
    return chosen, units, values, stages


def _find_label(tables: RunTables, metric: str) -> str:
    """Return the label whose values a metric compares with neutral prompts; blank if none."""
    settings = {row["metric"]: row.get("parameters") or {} for row in tables.manifest["metrics"]}
    return str(settings.get(metric, {}).get("label") or "")


def select_scores(tables: RunTables, metric: str | None) -> tuple[pd.DataFrame, str]:
    """Return the values of the units by a metric, and its direction; ``TEXTS`` are categories."""
    rows, direction = _read_scores(tables, metric)
    return _select_whole(rows), direction


def _select_whole(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the values over all groups and targets; all values if there are none."""
    is_whole = (rows["group"] == "") & (rows["target"] == "")
    return rows[is_whole] if is_whole.any() else rows


def _read_scores(tables: RunTables, metric: str | None) -> tuple[pd.DataFrame, str]:
    """Return the values of the units by a metric, of groups and targets too, and its direction."""
    path, named = tables.folder / "per_unit.parquet", list[dict[Any, Any]]()
    if has_file(path):
        named = read_parquet(path, ["metric", "k"]).drop_duplicates().to_dict("records")
    definitions = {entry["metric"]: entry for entry in tables.manifest["metrics"]}
    names = {
        format_title(str(row["metric"]), row["k"]): row["metric"]
        for row in named  # those of a log are ratios, to which a unit has a contribution only
        if "log" not in definitions.get(row["metric"], {}).get("needs", ())
    }
    if not names:
        message = "no metric of the run has a value for each user, prompt or sentence"
        message += ": those of a log are ratios over its impressions" * bool(named)
        raise MissingEvidence(message)
    wanted = next(iter(names)) if metric is None else _find(metric, [*names], "metric")
    columns, where = [*TEXTS, "seed", "fold", "k", "value"], ("metric", [names[wanted]])
    rows = read_parquet(path, columns, where=where)
    rows = rows.dropna(subset=["value"])
    if rows.empty:
        raise MissingEvidence(f"no unit has a value of {wanted}")
    if (cutoff := wanted.rpartition("@")[2]).isdigit() and len(rows["k"].unique()) > 1:
        rows = rows[rows["k"] == int(cutoff)]
    return rows, str(definitions.get(names[wanted], {}).get("direction", "none"))


def _find(name: str, known: Sequence[str], kind: str) -> str:
    for title in known:
        if normalize_name(name) in map(normalize_name, (title, title.partition("@")[0])):
            return title
    message = f"the run has no {kind} {name!r} with values of single units"
    raise UnknownName(message, where=f"--{kind}", remedy=suggest(name, known))


def choose_models(run: RunTables, scores: pd.DataFrame, models: Sequence[str]) -> list[str]:
    """Return the models that are named, or the two with the best means, baselines last."""
    means = scores.groupby("model", sort=False, observed=True)["loss"].mean()
    baselines = views.list_baselines(run)
    known = sorted(map(str, means.sort_values(kind="stable").index), key=baselines.__contains__)
    return [_find(model, known, "model") for model in models] or known[:2]


def collect_examples(run: RunTables) -> tuple[str, list[list[dict[str, Any]]]]:
    """Return what the examples of a page are the worst of, and the rows of each unit.

    They are the units with the worst values of accuracy, else of the first metric that has units,
    with the lists of the two best models; none without values of units or stored lists.
    """
    definitions = views.collect_definitions(run)
    accuracy = views.select_accuracy_metric(definitions.values())
    rows: list[dict[str, Any]] = []
    with collect_warnings():  # without the stored stages there are no histories
        for title in (accuracy.title if accuracy else None, None):
            with contextlib.suppress(MissingEvidence, UnknownName):
                rows = rows or select_examples(run, title, worst=_MOST_EXAMPLES)
    units: dict[str, list[dict[str, Any]]] = {}
    counts = Counter[tuple[str, str]]()
    for row in rows:
        unit = row["unit_id"], row["model"]
        if row["list"] and counts[unit] < _MOST_PROMPTS:
            counts[unit] += 1
            units.setdefault(row["unit_id"], []).append(row)
    if not units:
        return "", []
    first = next(iter(units.values()))[0]
    title = views.get_title(first)
    name = views.name_metric(run, definitions[title]) if title in definitions else title
    return f"{name} of {first['model']}", [*units.values()]


class Stages:
    """What is known of the units of one dataset, seed and fold: labels, histories and titles."""

    def __init__(self, tables: RunTables, keys: Mapping[str, Any]) -> None:
        self._keys, self._folder, self._tables = keys, tables.folder, tables
        # the store is beside the runs, in which a run that is not published yet lies
        places = [parent / "store" for parent in tables.folder.resolve().parents[:4]]
        store = Store(next((place for place in places if place.is_dir()), places[1]))
        digests = {
            str(stage["kind"]): str(stage["digest"])
            for stage in reversed(tables.manifest["stages"])
            if stage["dataset"] == keys["dataset"]
            and stage["seed"] in {None, keys["seed"]}
            and stage["fold"] in {None, keys["fold"]}
        }
        kinds = ("dataset", "split", "queries")
        digests = {kind: digests[kind] for kind in kinds if kind in digests}
        self._stored = {kind: digest for kind, digest in digests.items() if store.has(digest)}
        if len(self._stored) < len(kinds):
            warn("the stored stages of the run are gone: run its spec again for the histories")
        self._store = store
        self._lists: dict[tuple[str, str], tuple[str, ...]] = {}

    def _load(self, kind: str) -> Any:
        return self._store.load(self._stored[kind]) if kind in self._stored else None

    @cached_property
    def dataset(self) -> Dataset | None:
        """The dataset; as the other two, None if it is not stored any more."""
        return cast("Dataset | None", self._load("dataset"))

    @cached_property
    def split(self) -> Split | None:
        """The training and the test rows."""
        return cast("Split | None", self._load("split"))

    @cached_property
    def queries(self) -> Queries | None:
        """Whom lists are made for."""
        return cast("Queries | None", self._load("queries"))

    @cached_property
    def _titles(self) -> dict[str, str]:
        items = self.dataset.items if self.dataset else None
        if items is None or "title" not in items.names:
            return {}
        titles = zip(items.ids.ids, items.column("title"), strict=True)
        return {str(item): title for item, title in titles if isinstance(title, str)}

    def list_queries(self, unit: str, kind: str) -> list[str]:
        """Return the ids of the queries of a unit: its own, or the prompts of a template."""
        if self.queries is None or kind == self.queries.unit:
            return [unit]
        return [str(name) for name in self.queries.ids.ids[self._select(self.queries, unit, kind)]]

    def _select(self, queries: Queries, unit: str, kind: str) -> AnyArray:
        """Return which queries belong to a unit, ``bool[queries]``."""
        if kind == queries.unit:
            return np.asarray(queries.ids.ids == unit)
        frame, name = queries.labels.frame, "pair_id" if kind == "sentence_pair" else kind
        known = frame[name].astype(str) if name in frame else pd.Series("", frame.index)
        return (known == unit.removeprefix(f"{name}=")).to_numpy()

    def read_lists(self, queries: Sequence[str]) -> None:
        """Read the lists of some queries."""
        path = self._folder / "lists.parquet"
        if not (queries and has_file(path)):
            return
        lists = read_parquet(path, where=("query_id", queries))
        for key, value in self._keys.items():
            lists = lists[lists[key] == value]
        names = [lists[name].astype(str) for name in ("model", "query_id")]
        items = lists["item_id"].astype(str).groupby(names, sort=False)
        self._lists = {(str(model), str(query)): tuple(ids) for (model, query), ids in items}

    def list_members(self, group: str) -> AnyArray:
        """Return the ids of the queries of a group: of a metric, or ``gender=F&age=25``."""
        if self.queries is None:
            raise MissingEvidence("the labels of the units are not stored", where="--group")
        labels, selected = self.queries.labels, np.ones(len(self.queries), dtype=bool)
        known = self._list_groups(labels)
        for part in [group] if group in known else group.split("&"):
            if part in known:
                selected &= np.isin(np.arange(len(self.queries)), known[part])
                continue
            name, _, value = part.partition("=")
            if name not in labels.names:
                message = f"the {self.queries.unit}s have no label {name!r}"
                raise UnknownName(message, where="--group", remedy=suggest(name, labels.names))
            members = labels.membership(name)
            if value not in members.values:
                message = f"no {self.queries.unit} has {part!r}"
                names = {each for each in known if each.startswith(f"{name}=")}
                names |= {f"{name}={value}" for value in members.values}
                raise UnknownName(message, where="--group", remedy=suggest(part, names))
            column = members.matrix[:, [members.values.index(value)]]
            selected &= column.toarray().ravel()
        return self.queries.ids.ids[selected]

    def _list_groups(self, labels: Attributes) -> dict[str, AnyArray]:
        """Return the queries of the groups of the run's metrics, by what files and pages say."""
        known = dict[str, AnyArray]()
        for by in {metric.by for metric in views.collect_definitions(self._tables).values()}:
            if by and parse_uncertain_label(by) is None:
                groups = group_by(labels, by, split_cells=True)
                shown = name_values(self._tables, pd.DataFrame({"group": groups.names}))["group"]
                rows = [groups.find_rows(code) for code in range(len(groups.names))]
                known |= {
                    **dict(zip(shown, rows, strict=True)),
                    **dict(zip(groups.names, rows, strict=True)),
                }
        return known

    def describe(self, unit: AnyArray, scores: pd.DataFrame, model: str) -> dict[str, Any]:
        """Return the row of a unit and a model; empty if the model has no value for the unit."""
        of_model = scores[scores["model"] == model]
        if of_model.empty:
            return {}
        name, score = str(unit[0]), of_model.iloc[0]
        row = {column: score[column] for column in EXAMPLE_COLUMNS if column in score.index}
        queries = self.list_queries(name, row["unit"])
        listed = self._lists.get((model, name), ())
        history: tuple[str, ...] = ()
        relevant: tuple[str, ...] = ()
        ordered = False
        if self.split is not None and queries == [name]:
            history = _list_items(self.split.train, name)[::-1]
            ordered = self.split.train.times is not None
            relevant = _list_items(self.split.test, name)
        missed = tuple(item for item in relevant if item not in set(listed))
        named = {"history": history, "list": listed, "missed": missed, "relevant": relevant}
        row |= {key: self._entitle(items) for key, items in named.items()}
        row |= {"neutral": (), "ordered": ordered}
        if row["unit"] == "item":
            return row | {"labels": "", "text": self._titles.get(name, "")}
        return row | self._read_query(name, row["unit"])

    def split_prompts(
        self, row: dict[str, Any], parts: pd.DataFrame, label: str
    ) -> list[dict[str, Any]]:
        """Return a row for each prompt of a unit that has several, with its text and its list.

        Prompts that state a label have the value of their group and the list of the ``neutral``
        prompt, if the unit has one; the largest values are first.

        Args:
            row: What ``describe`` returned.
            parts: The values of units by group.
            label: The label that is compared with the neutral prompts; blank if none is.
        """
        unit, model, queries = str(row["unit_id"]), row["model"], self.queries
        own = [name for name in self.list_queries(unit, row["unit"]) if name != unit]
        own = [name for name in own if (model, name) in self._lists]
        if queries is None or not own:
            return [row]
        at = queries.ids.find(np.array(own, dtype=object))
        labels = queries.labels.frame.iloc[at]
        texts = own if queries.texts is None else queries.texts[at].tolist()
        lists = [self._entitle(self._lists[model, name]) for name in own]
        is_neutral = np.zeros(len(own), dtype=bool)
        if label and "neutral" in labels:
            is_neutral = (labels["neutral"] == 1).to_numpy()
        of_row = parts[(parts["unit_id"] == unit) & (parts["model"] == model)]
        values = dict(zip(of_row["group"], of_row["value"], strict=True))
        rows = []
        for n in np.flatnonzero(~is_neutral).tolist():
            prompt = {**row, "text": texts[n], "list": lists[n]}
            if is_neutral.any():
                names = [f"{name}={labels[name].iloc[n]}" for name in split_crossing(label)]
                group = JOIN.join(names)
                prompt |= {"group": group, "value": values.get(group, math.nan)}
                prompt["neutral"] = lists[int(is_neutral.argmax())]
            rows.append(prompt)
        return sorted(rows, key=lambda each: -abs(np.nan_to_num(each["value"])))

    def _entitle(self, items: Sequence[str]) -> tuple[str, ...]:
        return tuple(self._titles.get(item, item) for item in items)

    def _read_query(self, unit: str, kind: str) -> dict[str, str]:
        """Return the labels that the queries of a unit share, and their texts."""
        if self.queries is None:
            return {"labels": "", "text": ""}
        selected, texts = self._select(self.queries, unit, kind), self.queries.texts
        cells = {
            str(name): {
                f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in column.dropna()
            }
            for name, column in self.queries.labels.frame[selected].items()
        }
        labels = "&".join(f"{name}={min(own)}" for name, own in cells.items() if len(own) == 1)
        return {"labels": labels, "text": "" if texts is None else " / ".join(texts[selected])}


def _list_items(rows: Interactions | None, user: str) -> tuple[str, ...]:
    """Return the items of a user in the order of time, else of the rows."""
    if rows is None:
        return ()
    code = rows.user_ids.find(np.array([user]))[0]
    at = np.flatnonzero(rows.users == code) if code >= 0 else np.empty(0, dtype=np.int64)
    if rows.times is not None:
        at = at[np.argsort(rows.times[at], kind="stable")]
    return tuple(rows.item_ids.ids[rows.items[at]])
