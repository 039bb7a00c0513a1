"""The plots of papers: long tails, popularity, stereotypes, latent spaces, prices, associations.

Each yields nothing where it does not apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from recbias.core.dataset import FloatArray
from recbias.core.files import has_file
from recbias.reports import svg, views
from recbias.reports.charts import (
    Axis,
    Dot,
    Line,
    Row,
    Rows,
    compute_box,
    draw_lines,
    draw_points,
    draw_rows,
)
from recbias.reports.plots import (
    Estimate,
    NameFile,
    describe_direction,
    draw_values,
    find_metrics,
    list_distinct,
    list_rows,
    make_mark,
)
from recbias.reports.run import RunTables, convert_parquet_errors, name_values
from recbias.reports.svg import Interval, Plot
from recbias.reports.views import Definition, list_models
from recbias.reports.wording import get_label_name, get_label_value

# ---- popularity ----

_HEAD, _STEPS = 0.2, 60
_REFERENCE = "training data"


def draw_long_tail(run: RunTables, dataset: str, name_file: NameFile) -> Iterator[Plot]:
    """Yield the cumulative share of recommendations over items, the most popular first."""
    shares = compute_exposure(run, dataset)
    if not shares:
        return
    lines = {}
    for name, column in shares.items():  # at ranks that are equally far apart
        ranks = np.unique(np.geomspace(1, column.size, _STEPS).round().astype(int))
        points = zip(ranks.tolist(), map(Interval, 100 * column[ranks - 1]), strict=True)
        head = max(1, round(_HEAD * column.size))
        title = (
            f"{name}: {100 * column[head - 1]:.1f}% go to the {head:,} most popular items "
            f"({_HEAD:.0%} of all)"
        )
        lines[name] = Line([*points], title=title, dotted=name == _REFERENCE)
    has_training = _REFERENCE in shares
    order = "training interactions" if has_training else "recommendations"
    reference = "Items are sorted by the recommendations of all models."
    if has_training:
        reference = "The dotted curve is the share of the training interactions."
    n_items = max(2, *(column.size for column in shares.values()))
    yield draw_lines(
        lines,
        Axis(
            *("Items, most popular first", f"by {order}, log scale"),
            span=(1, n_items),
            may_be_log=True,
        ),
        Axis("Share of recommendations", "up to this item", span=(0, 100), unit="%"),
        name=name_file("long-tail"),
        title="Long tail of recommended items",
        caption=(
            "At each rank, the share of a model's recommendations that go to the items up to it. "
            f"A curve further left recommends popular items more. {reference}"
        ),
    )


_KEYS = ["dataset", "model", "item_id"]


@lru_cache(maxsize=1)
def count_recommendations(run: RunTables) -> pd.DataFrame:
    """Return how often each model recommends each item, over all seeds and folds.

    Returns:
        ``dataset``, ``model``, ``item_id`` and ``lists``; no rows without ``lists.parquet``.
    """
    path = run.folder / "lists.parquet"
    if not has_file(path):
        return pd.DataFrame(columns=[*_KEYS, "lists"])
    import pyarrow.parquet as pq

    with convert_parquet_errors(path):
        table = pq.read_table(path, columns=_KEYS, read_dictionary=_KEYS).unify_dictionaries()
    groups = table.group_by(_KEYS, use_threads=False).aggregate([([], "count_all")])
    frame: pd.DataFrame = groups.to_pandas().astype(dict.fromkeys(_KEYS, object))
    return frame.rename(columns={"count_all": "lists"})


def compute_exposure(run: RunTables, dataset: str) -> dict[str, FloatArray]:
    """Return the share of each model's recommendations that go to the first items of a dataset.

    Items are sorted by training interactions, ties by identifier, and the first share is that of
    the interactions; without ``popularity.parquet`` by the recommendations of all models.
    """
    counts = count_recommendations(run)
    counts = counts[counts["dataset"] == dataset]
    training = _count_interactions(run, dataset)
    if counts.empty or (training is not None and not training.any()):
        return {}
    table = counts.pivot_table(
        index="item_id", columns="model", values="lists", aggfunc="sum", fill_value=0, sort=False
    )
    popularity = table.sum(axis=1) if training is None else training
    items = popularity.index.union(table.index)
    popularity = popularity.reindex(items, fill_value=0).sort_index()
    order = popularity.sort_values(ascending=False, kind="stable").index
    table = table.reindex(order, fill_value=0)
    columns = {name: table[name] for name in list_models(run) if name in table}
    if training is not None:
        columns = {_REFERENCE: training.reindex(order, fill_value=0), **columns}
    totals = {name: column.to_numpy(np.float64).cumsum() for name, column in columns.items()}
    return {name: total / max(float(total[-1]), 1.0) for name, total in totals.items()}


def _count_interactions(run: RunTables, dataset: str) -> pd.Series | None:
    if run.popularity is None:
        return None
    frame = run.popularity[run.popularity["dataset"] == dataset]
    frame = frame[np.isfinite(frame["interactions"].to_numpy(dtype=np.float64))]
    items = frame["item_id"].astype(object)
    counts: pd.Series = frame["interactions"].groupby(items, sort=False).sum()
    return None if frame.empty else counts


_ORDER_SEED = 0  # the seed of the order of the items
_FEWEST_ITEMS, _FIRST, _STEPS_OF_MEAN = 30, 10, 120


def draw_popularity_means(run: RunTables, dataset: str, name_file: NameFile) -> Iterator[Plot]:
    """Yield the running means of the items' popularity and of its logarithm, in the first fold.

    There are none without ``log_popularity_difference``, or for too few items or equal ones only.
    """
    if run.popularity is None or not find_metrics(run, "log_popularity_difference"):
        return
    frame = run.popularity[run.popularity["dataset"] == dataset]
    for column in ("seed", "fold"):
        frame = frame[frame[column] == frame[column].iloc[0]] if len(frame) else frame
    counts = frame["interactions"].to_numpy(dtype=np.float64)
    counts = np.random.default_rng(_ORDER_SEED).permutation(
        counts[np.isfinite(counts) & (counts > 0)]
    )
    if counts.size < _FEWEST_ITEMS or np.ptp(counts) == 0:
        return
    steps = np.unique(np.linspace(_FIRST, counts.size, _STEPS_OF_MEAN).round().astype(int))
    lines = {}
    for label, values in (("popularity", counts), ("log popularity", np.log(counts))):
        means = np.cumsum(values)[steps - 1] / steps / values.mean()
        lines[label] = Line([*zip(steps.tolist(), map(Interval, means.tolist()), strict=True)])
    yield draw_lines(
        lines,
        Axis("Items", "in random order", span=(0, counts.size)),
        Axis("Running mean", "divided by the mean of all items"),
        name=name_file("popularity-means"),
        title="Mean popularity as items are added",
        caption=(
            f"The mean over the first items, from {_FIRST} on, of the training interactions and "
            f"of their natural logarithm, in one random order (seed {_ORDER_SEED}). A jump is a "
            "single item that changes the mean of all before it: where popularity has a heavy "
            "tail, its mean settles late or never, that of its logarithm soon."
        ),
    )


# ---- values of units ----


def read_units(run: RunTables, metric: Definition, dataset: str) -> pd.DataFrame:
    """Return a metric's value for each unit, its mean over seeds and folds.

    Returns:
        ``model``, ``group``, ``target``, ``unit_id`` (categories) and ``value``, in the order of
        the file; no rows without ``per_unit.parquet``.
    """
    keys = ["model", "group", "target", "unit_id"]
    path = run.folder / "per_unit.parquet"
    if not has_file(path):
        return pd.DataFrame(columns=[*keys, "value"]).astype({"unit_id": "category"})
    import pyarrow.parquet as pq

    columns = [*keys, "seed", "fold", "metric", "k", "value"]
    labels = [metric.title, metric.title.rpartition("@")[0]]
    filters = [("dataset", "==", dataset), ("metric", "in", labels)]
    with convert_parquet_errors(path):
        units: pd.DataFrame = pq.read_table(path, columns=columns, filters=filters).to_pandas()
    keeps = units["value"].notna()
    for pair in units[["metric", "k"]].drop_duplicates().itertuples(index=False):
        if views.format_title(*pair) != metric.title:
            keeps &= ~(units["metric"].isin([pair.metric]) & units["k"].isin([pair.k]))
    units = units[keeps].astype({**dict.fromkeys(keys[:3], object), "unit_id": "category"})
    units = name_values(run, units)
    if len(units[["seed", "fold"]].drop_duplicates()) >= 2:
        units = units.groupby(keys, sort=False, observed=True)["value"].mean().reset_index()
    units = units[units["value"].abs() <= svg.LARGEST]
    return units[[*keys, "value"]].reset_index(drop=True)


def draw_stereotypes(run: RunTables, dataset: str, name_file: NameFile) -> Iterator[Plot]:
    """Yield box plots for each metric of the ranks of labelled items, query group and target."""
    for metric in find_metrics(run, "REC-ST", "MRR_BAD"):
        if metric.parameters.get("gap") is not None:
            continue
        units = read_units(run, metric, dataset)
        for (group, target), part in units.groupby(["group", "target"], sort=False):
            boxes = {
                str(model): compute_box(values.to_numpy(np.float64))
                for model, values in part.groupby("model", sort=False)["value"]
            }
            ranked = sorted(boxes, key=lambda model: (boxes[model].mean, model))
            rows = [Row(name, note=f"n {boxes[name].n:,}", box=boxes[name]) for name in ranked]
            place = ", ".join(filter(None, [str(group), str(target)]))
            yield draw_rows(
                Rows(tuple(rows), metric.heading, describe_direction(metric)),
                name=name_file(f"exposure-{metric.title}-{place}"),
                title=f"{metric.heading} of each user's list" + f", {place}" * bool(place),
                caption=(
                    "Each box holds the middle half of a model's values; whiskers reach the last "
                    "value within 1.5 times its length. Models are sorted by mean."
                ),
            )


def draw_hit_shares(run: RunTables, dataset: str, name_file: NameFile) -> Iterator[Plot]:
    """Yield the share of lists with a labelled item, for each label, group and target."""
    for metric in find_metrics(run, "HIT_BAD"):
        if metric.parameters.get("gap") is None:
            parts: dict[tuple[str, str], list[Estimate]] = {}
            for row in list_rows(run, metric, dataset):
                parts.setdefault((row["group"], row["target"]), []).append(row)
            for part, rows in parts.items():
                name = name_file(f"hits-{metric.title}-{', '.join(filter(None, part))}")
                yield draw_values(run, rows, name=name)


_MOST_MODELS, _MOST_CLOUD = 6, 2400
_LONGER = 1.16  # how much wider than high the frame of a latent space is


def draw_projections(run: RunTables, dataset: str, name_file: NameFile) -> Iterator[Plot]:
    """Yield the points of each projection and model on two components, with their means."""
    for metric in find_metrics(run, "latent_projection"):
        units = read_units(run, metric, dataset)
        columns = units.pivot_table(
            index=["model", "group", "unit_id"], columns="target", values="value", observed=True
        )
        points = columns.dropna().reset_index()
        models = [name for name in list_models(run) if name in {*points["model"]}]
        for model in models[:_MOST_MODELS]:
            own = points[points["model"] == model]
            yield _draw_projection(own, model, name_file(f"projection-{model}"))


def _draw_projection(points: pd.DataFrame, model: str, name: str) -> Plot:
    step = max(1, -(-len(points) // _MOST_CLOUD))
    clouds, centres = list[Dot](), list[Dot]()
    for series, (group, own) in enumerate(points.groupby("group", sort=False)):
        _, shape = svg.choose_look(series)
        pairs = own[["PC1", "PC2"]].to_numpy(np.float64)
        clouds += [
            Dot(Interval(x), Interval(y), series=series, shape=shape, kind="cloud")
            for x, y in pairs[::step].tolist()
        ]
        x, y = pairs.mean(axis=0).tolist()
        names = f"{group} ({len(own):,})", f"mean of {group}: {x:.3g}, {y:.3g}"
        centres.append(Dot(Interval(x), Interval(y), *names, series, shape, "centre"))
    frame = svg.make_axes((0, 1), (0, 1), svg.width() / _LONGER)
    lengths = frame.x.end - frame.x.start, frame.y.start - frame.y.end
    ranges = [svg.pad_range(points[axis]) for axis in ("PC1", "PC2")]
    unit = max((b - a) / length for (a, b), length in zip(ranges, lengths, strict=True))
    first, second = (
        Axis(title, span=((a + b - unit * length) / 2, (a + b + unit * length) / 2))
        for title, (a, b), length in zip(
            ("first component", "second component"), ranges, lengths, strict=True
        )
    )
    every = f" Of {len(points):,} points every n-th is drawn." if step > 1 else ""
    return draw_points(
        [*clouds, *centres],
        first,
        second,
        svg.width() / _LONGER,
        name=name,
        title=f"Latent space of {model}",
        caption=(
            "Vectors on the first two principal components, with the same unit on both axes. "
            f"Large marks are the means of the sets.{every}"
        ),
    )


# ---- labels of prompts ----

_OF_TARGETS = {"price_percentage": "levels", "association": "association", "top_words": "words"}
_MOST_TARGETS = 60
# label values that come first, as in the paper
_FIRST_LABELS = ("female", "white")


def draw_targets(run: RunTables, dataset: str, name_file: NameFile) -> Iterator[Plot]:
    """Yield price levels and attribute values by label: of each model and target, each label."""
    for metric in find_metrics(run, *_OF_TARGETS):
        rows = [row for row in list_rows(run, metric, dataset) if row["target"]]
        labels = list_distinct(rows, "group")
        labels.sort(key=lambda label: get_label_value(label) not in _FIRST_LABELS)
        lines: list[Row] = []
        for model in [name for name in list_models(run) if name in list_distinct(rows, "model")]:
            own = [row for row in rows if row["model"] == model]
            lines += [Row(model), *_make_target_rows(own, labels)]
        if not lines:
            continue
        targets = get_label_name(list_distinct(rows, "target")) or "target"
        by = get_label_name(labels) or "label"
        is_share = metric.name == "price_percentage"
        equal = 1 / len(labels) if is_share and not metric.parameters.get("within") else 0.0
        yield draw_rows(
            Rows(
                tuple(lines),
                axis=f"Share of the {targets} level's slots" if is_share else metric.heading,
                series=tuple(map(get_label_value, labels)),
                lines=(equal,) * (equal > 0 or not is_share),
                line_label=f"equal shares, {equal:.2g}" if equal else "",
            ),
            name=name_file(f"{_OF_TARGETS[metric.name]}-{by}"),
            title=f"{targets.capitalize()} by {by}",
            caption=f"{metric.heading}. {metric.summary}",
        )


def _make_target_rows(rows: Sequence[Estimate], labels: Sequence[str]) -> list[Row]:
    """Return a row for each target, with a mark for each label; of many the ends by value."""
    targets: dict[str, list[Estimate]] = {}
    for row in sorted(rows, key=lambda row: labels.index(row["group"])):
        targets.setdefault(row["target"], []).append(row)
    names = list_distinct(rows, "target")
    if len(names) > _MOST_TARGETS:
        ranked = sorted(names, key=lambda name: -targets[name][0]["value"])
        names = [*ranked[: _MOST_TARGETS // 2], *ranked[-_MOST_TARGETS // 2 :]]
    return [
        Row(
            get_label_value(name),
            tuple(make_mark(row, labels.index(row["group"])) for row in targets[name]),
        )
        for name in names
    ]
