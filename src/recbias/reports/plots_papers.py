"""The plots of papers: long tails, popularity, stereotypes, latent spaces, prices, associations.

Each yields nothing where it does not apply.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pandas as pd

from recbias.core.dataset import FloatArray
from recbias.core.files import has_file
from recbias.reports import charts, plots, svg, views
from recbias.reports.run import RunTables, name_values, read_parquet, read_row_groups
from recbias.reports.svg import Plot
from recbias.reports.views import Definition, list_models
from recbias.reports.wording import get_label_name, get_label_value

# ---- popularity ----

_HEAD, _STEPS = 0.2, 60
_REFERENCE = "training data"


def draw_long_tail(run: RunTables, dataset: str, name_file: plots.NameFile) -> Iterator[Plot]:
    """Yield the cumulative share of recommendations over items, the most popular first."""
    shares = compute_exposure(run, dataset)
    if not shares:
        return
    lines = {}
    for name, column in shares.items():  # at ranks that are equally far apart
        ranks = np.unique(np.geomspace(1, column.size, _STEPS).round().astype(int))
        points = zip(ranks.tolist(), map(charts.Interval, 100 * column[ranks - 1]), strict=True)
        head = max(1, round(_HEAD * column.size))
        title = (
            f"{name}: {100 * column[head - 1]:.1f}% go to the {head:,} most popular items "
            f"({_HEAD:.0%} of all)"
        )
        lines[name] = charts.Line([*points], title=title, dotted=name == _REFERENCE)
    order, reference = "recommendations", "Items are sorted by the recommendations of all models."
    if _REFERENCE in shares:
        order = "training interactions"
        reference = "The dotted curve is the share of the training interactions."
    span = (1, max(2, *(column.size for column in shares.values())))
    yield charts.draw_lines(
        lines,
        charts.Axis("Items, most popular first", f"by {order}", span=span, may_be_log=True),
        charts.Axis("Share of recommendations", "up to this item, in %", span=(0, 100)),
        name=name_file("long-tail"),
        title="Long tail of recommended items",
        caption=(
            "Height at rank r: the share of recommendations that go to the r most popular items. "
            f"A curve further left recommends popular items more. {reference}"
        ),
    )


@lru_cache(maxsize=1)
def count_recommendations(run: RunTables) -> pd.DataFrame:
    """Return how often each model recommends each item, over all seeds and folds.

    Returns:
        ``dataset``, ``model``, ``item_id`` and ``lists``; no rows without ``lists.parquet``.
    """
    path, keys = run.folder / "lists.parquet", ["dataset", "model", "item_id"]
    if not has_file(path):
        return pd.DataFrame(columns=[*keys, "lists"])
    counts = [
        rows.group_by(keys, use_threads=False).aggregate([([], "count_all")]).to_pandas()
        for rows in read_row_groups(path, keys)
    ]
    frame: pd.DataFrame = pd.concat([part.astype(dict.fromkeys(keys, object)) for part in counts])
    totals = frame.groupby(keys, sort=False).sum()
    return totals.rename(columns={"count_all": "lists"}).reset_index()


def compute_exposure(run: RunTables, dataset: str) -> dict[str, FloatArray]:
    """Return the share of each model's recommendations that go to the first items of a dataset.

    Items are sorted by training interactions, ties by identifier, and the first share is that of
    the interactions; without ``popularity.parquet`` by the recommendations of all models.
    """
    counts = count_recommendations(run)
    counts = counts[counts["dataset"] == dataset]
    known = _select_popularity(run, dataset)
    training = known["interactions"].groupby(known["item_id"].astype(object), sort=False).sum()
    if counts.empty or (len(training) and not training.any()):
        return {}
    table = counts.pivot_table(
        index="item_id", columns="model", values="lists", aggfunc="sum", fill_value=0, sort=False
    )
    popularity = training if len(training) else table.sum(axis=1)
    items = popularity.index.union(table.index)
    popularity = popularity.reindex(items, fill_value=0).sort_index()
    order = popularity.sort_values(ascending=False, kind="stable").index
    columns = {name: table[name] for name in list_models(run) if name in table}
    if len(training):
        columns = {_REFERENCE: training, **columns}
    totals = {
        name: column.reindex(order, fill_value=0).to_numpy(np.float64).cumsum()
        for name, column in columns.items()
    }
    return {name: total / max(float(total[-1]), 1.0) for name, total in totals.items()}


def _select_popularity(run: RunTables, dataset: str) -> pd.DataFrame:
    """Return the known training interactions of a dataset; no rows where none are stored."""
    if run.popularity is None:
        return pd.DataFrame({"item_id": [], "interactions": []})
    frame = run.popularity[run.popularity["dataset"] == dataset]
    known: pd.DataFrame = frame[np.isfinite(frame["interactions"].to_numpy(np.float64))]
    return known


_ORDER_SEED = 0  # the seed of the order of the items
_FEWEST_ITEMS, _FIRST, _STEPS_OF_MEAN = 30, 10, 120


def draw_popularity_means(
    run: RunTables, dataset: str, name_file: plots.NameFile
) -> Iterator[Plot]:
    """Yield the running means of the items' popularity and of its logarithm, in the first fold.

    There are none without ``log_popularity_difference``, or for too few items or equal ones only.
    """
    frame = _select_popularity(run, dataset)
    if frame.empty or not plots.find_metrics(run, "log_popularity_difference"):
        return
    for column in ("seed", "fold"):
        frame = frame[frame[column] == frame[column].iloc[0]]
    counts = frame["interactions"].to_numpy(dtype=np.float64)
    counts = np.random.default_rng(_ORDER_SEED).permutation(counts[counts > 0])
    if counts.size < _FEWEST_ITEMS or np.ptp(counts) == 0:
        return
    steps = np.unique(np.linspace(_FIRST, counts.size, _STEPS_OF_MEAN).round().astype(int))
    lines = {}
    for label, values in (("popularity", counts), ("log popularity", np.log(counts))):
        means = np.cumsum(values)[steps - 1] / steps / values.mean()
        lines[label] = charts.Line(
            [*zip(steps.tolist(), map(charts.Interval, means.tolist()), strict=True)]
        )
    yield charts.draw_lines(
        lines,
        charts.Axis("Items", "in random order", span=(0, counts.size)),
        charts.Axis("Running mean", "divided by the mean of all items"),
        name=name_file("popularity-means"),
        title="Mean popularity as items are added",
        caption=(
            f"The mean over the first items, from {_FIRST} on, of the training interactions and "
            f"of their natural logarithm, in one random order (seed {_ORDER_SEED}). One very "
            "popular item can shift the whole mean; the mean of the logarithm settles sooner."
        ),
    )


# ---- values of units ----


def _read_units(run: RunTables, metric: Definition, dataset: str) -> pd.DataFrame:
    """Return a metric's value for each unit, its mean over seeds and folds.

    Returns:
        ``model``, ``group``, ``target``, ``unit_id`` (categories) and ``value``, in the order of
        the file; no rows without ``per_unit.parquet``.
    """
    keys = ["model", "group", "target", "unit_id"]
    path = run.folder / "per_unit.parquet"
    if not has_file(path):
        return pd.DataFrame(columns=[*keys, "value"]).astype({"unit_id": "category"})
    labels = [metric.title, metric.title.rpartition("@")[0]]
    columns = ["dataset", *keys, "seed", "fold", "metric", "k", "value"]
    units = read_parquet(path, columns, where=("metric", labels))
    units = units[(units["dataset"] == dataset) & (units["value"].abs() <= svg.LARGEST)]
    for label, k in units[["metric", "k"]].drop_duplicates().to_numpy().tolist():
        if views.format_title(label, k) != metric.title:
            units = units[(units["metric"] != label) | ~units["k"].isin([k])]
    units = units.astype({**dict.fromkeys(keys[:3], object), "unit_id": "category"})
    units = name_values(run, units)
    if len(units[["seed", "fold"]].drop_duplicates()) >= 2:
        units = units.groupby(keys, sort=False, observed=True)["value"].mean().reset_index()
    return units[[*keys, "value"]].reset_index(drop=True)


def draw_stereotypes(run: RunTables, dataset: str, name_file: plots.NameFile) -> Iterator[Plot]:
    """Yield box plots for each metric of the ranks of labelled items, query group and target."""
    for metric in plots.find_metrics(run, "REC-ST", "MRR_BAD"):
        if metric.parameters.get("gap") is not None:
            continue
        units = _read_units(run, metric, dataset)
        for part, own in units.groupby(["group", "target"], sort=False):
            boxes = {
                str(model): charts.compute_box(values.to_numpy(np.float64))
                for model, values in own.groupby("model", sort=False)["value"]
            }
            ranked = sorted(boxes, key=lambda model: (boxes[model].mean, model))
            place = ", ".join(filter(None, map(str, part)))
            yield charts.draw_rows(
                [
                    charts.Row(name, note=f"n {boxes[name].n:,}", box=boxes[name])
                    for name in ranked
                ],
                charts.Axis(metric.heading, plots.describe_direction(metric)),
                name=name_file(f"exposure-{metric.title}-{place}"),
                title=f"{metric.heading} of each user's list" + f", {place}" * bool(place),
                caption=(
                    "Each box holds the middle half of a model's values, with a line at their "
                    "median and a diamond at their mean; whiskers reach the last value within 1.5 "
                    "times its length. Models are sorted by mean."
                ),
            )


def draw_hit_shares(run: RunTables, dataset: str, name_file: plots.NameFile) -> Iterator[Plot]:
    """Yield the share of lists with a labelled item, for each label, group and target."""
    for metric in plots.find_metrics(run, "HIT_BAD"):
        if metric.parameters.get("gap") is None:
            parts: dict[tuple[str, str], list[plots.Estimate]] = {}
            for row in plots.list_rows(run, metric, dataset):
                parts.setdefault((row["group"], row["target"]), []).append(row)
            for part, rows in parts.items():
                name = name_file(f"hits-{metric.title}-{', '.join(filter(None, part))}")
                yield plots.draw_values(run, rows, name=name)


_MOST_MODELS, _MOST_CLOUD = 6, 2400
_LONGER = 1.16  # how much wider than high a latent space is


def draw_projections(run: RunTables, dataset: str, name_file: plots.NameFile) -> Iterator[Plot]:
    """Yield the points of each projection and model on two components, with their means."""
    for metric in plots.find_metrics(run, "latent_projection"):
        points = _read_units(run, metric, dataset).pivot_table(
            index=["model", "group", "unit_id"], columns="target", values="value", observed=True
        )
        points = points.dropna().reset_index()
        models = [name for name in list_models(run) if name in {*points["model"]}]
        for model in models[:_MOST_MODELS]:
            own = points[points["model"] == model]
            yield _draw_projection(own, model, name_file(f"projection-{model}"))


def _draw_projection(points: pd.DataFrame, model: str, name: str) -> Plot:
    step = max(1, -(-len(points) // _MOST_CLOUD))
    clouds, centres = list[charts.Dot](), list[charts.Dot]()
    for series, (group, own) in enumerate(points.groupby("group", sort=False)):
        _, shape = svg.choose_look(series)
        pairs = own[["PC1", "PC2"]].to_numpy(np.float64)
        clouds += [
            charts.Dot(
                charts.Interval(x), charts.Interval(y), series=series, shape=shape, kind="cloud"
            )
            for x, y in pairs[::step].tolist()
        ]
        x, y = pairs.mean(axis=0).tolist()
        names = f"{group} ({len(own):,})", f"mean of {group}: {x:.3g}, {y:.3g}"
        centres.append(
            charts.Dot(charts.Interval(x), charts.Interval(y), *names, series, shape, "centre")
        )
    height = svg.width() / _LONGER
    x_span, y_span = charts.make_equal_spans(points["PC1"], points["PC2"], height)
    every = f" Of {len(points):,} points every n-th is drawn." if step > 1 else ""
    return charts.draw_points(
        [*clouds, *centres],
        charts.Axis("first component", span=x_span),
        charts.Axis("second component", span=y_span),
        height,
        name=name,
        title=f"Latent space of {model}",
        caption=(
            "Vectors on the first two principal components, with the same unit on both axes. "
            f"Large marks are the means of the sets.{every}"
        ),
    )


# ---- labels of prompts ----

_OF_TARGETS = {"price_percentage": "levels", "association": "association", "top_words": "words"}
# label values that come first, as in the paper
_FIRST_LABELS = ("female", "white")


def draw_targets(run: RunTables, dataset: str, name_file: plots.NameFile) -> Iterator[Plot]:
    """Yield price levels and attribute values by label: of each model and target, each label."""
    for metric in plots.find_metrics(run, *_OF_TARGETS):
        rows = [row for row in plots.list_rows(run, metric, dataset) if row["target"]]
        if not rows:
            continue
        labels = plots.list_distinct(rows, "group")
        labels.sort(key=lambda label: get_label_value(label) not in _FIRST_LABELS)
        names = {row["target"]: get_label_value(row["target"]) for row in rows}
        lines: list[charts.Row] = []
        for model in [
            name for name in list_models(run) if name in plots.list_distinct(rows, "model")
        ]:
            own = [row for row in rows if row["model"] == model]
            lines += [
                charts.Row(model),
                *plots.make_rows(own, ("target", names), ("group", labels)),
            ]
        targets = get_label_name(plots.list_distinct(rows, "target")) or "target"
        by = get_label_name(labels) or "label"
        title, line, line_label = metric.heading, {0.0: "neutral"}, ""
        if metric.name == "price_percentage":
            title, line = f"Share of the {targets} level's slots", {}
            if not metric.parameters.get("within"):
                equal = 1 / len(labels)
                line, line_label = {equal: "neutral"}, f"equal shares, {equal:.2g}"
        yield charts.draw_rows(
            lines,
            charts.Axis(title, lines=line),
            series=[*map(get_label_value, labels)],
            line_label=line_label,
            name=name_file(f"{_OF_TARGETS[metric.name]}-{by}"),
            title=f"{targets.capitalize()} by {by}",
            caption=f"{metric.heading}. {metric.summary}",
        )
