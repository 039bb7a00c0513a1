"""Plots of items and users: how values are distributed, and how they settle."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from recbias.core.dataset import FloatArray
from recbias.core.errors import MissingEvidence
from recbias.core.files import has_file
from recbias.reports import plots as rows
from recbias.reports import svg
from recbias.reports.run import RunTables, convert_parquet_errors
from recbias.reports.svg import Axes, Scale
from recbias.reports.views import Definition, list_models
from recbias.reports.wording import Safe, join

_HEAD = 0.2
_STEPS = 60
_REFERENCE = "training data"


def draw_long_tail(run: RunTables, exposure: Exposure, *, name: str) -> svg.Plot:
    """Return the plot of one dataset's exposure."""
    n = max(exposure.n_items, 2)
    axes = svg.make_axes((1, n), (0, 100), 360, margins=(48, 12), log_x=True)
    series = {model: number for number, model in enumerate(list_models(run))}
    shares = dict(sorted(exposure.models.items(), key=lambda item: series.get(item[0], 0)))
    if exposure.training is not None:
        shares = {_REFERENCE: exposure.training, **shares}
    curves = {}
    for model, column in shares.items():  # the curve at ranks that are equally far apart
        ranks = np.unique(np.geomspace(1, column.size, _STEPS).round().astype(int))
        points = [axes.at(rank, 100 * column[rank - 1]) for rank in ranks.tolist()]
        number = series.get(model, None if model == _REFERENCE else 0)
        curves[model] = svg.Curve(points, number, _describe_head(model, column))
    order = "training interactions"
    reference = "The dotted curve is the share of the training interactions."
    if exposure.training is None:
        order = "recommendations"
        reference = "Items are sorted by the recommendations of all models."
    return svg.draw_chart(
        axes,
        svg.draw_curves(curves, axes.frame),
        x_title=("Items, most popular first", f"by {order}, log scale"),
        y_title=("Share of recommendations", "up to this item"),
        drawn=axes.draw(svg.choose_log_ticks(1, axes.x.high), unit="%"),
        name=name,
        title="Long tail of recommended items",
        caption=(
            "At each rank, the share of a model's recommendations that go to the items up to it. "
            f"A curve further left recommends popular items more. {reference}"
        ),
    )


def _describe_head(model: str, shares: FloatArray) -> str:
    head = max(1, round(_HEAD * shares.size))
    return (
        f"{model}: {100 * shares[head - 1]:.1f}% go to the {head:,} most popular items "
        f"({_HEAD:.0%} of all)"
    )


_KEYS = ["dataset", "model", "item_id"]


@dataclass(frozen=True, eq=False)
class Exposure:
    """Cumulative shares over items, the most popular first.

    Args:
        models: For each model, the share of its recommendations that go to the first items,
            ``float64[n_items]``, above 0 and up to 1.
        training: The same share of the training interactions, or None if they are not known.
    """

    models: Mapping[str, FloatArray]
    training: FloatArray | None

    @property
    def n_items(self) -> int:
        """The number of items."""
        return next(iter(self.models.values())).size


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


def compute_exposure(run: RunTables, counts: pd.DataFrame, dataset: str) -> Exposure | None:
    """Return the shares of one dataset; None without recommendations or interactions.

    Items are sorted by training interactions, ties by identifier; without ``popularity.parquet``
    by the recommendations of all models.
    """
    counts = counts[counts["dataset"] == dataset]
    if counts.empty:
        return None
    table = counts.pivot_table(
        index="item_id", columns="model", values="lists", aggfunc="sum", fill_value=0, sort=False
    )
    training = _count_interactions(run, dataset)
    if training is not None and not training.any():
        return None
    popularity = table.sum(axis=1) if training is None else training
    items = popularity.index.union(table.index)
    popularity = popularity.reindex(items, fill_value=0).sort_index()
    order = popularity.sort_values(ascending=False, kind="stable").index
    table = table.reindex(order, fill_value=0)
    shares = None if training is None else _accumulate(training.reindex(order, fill_value=0))
    return Exposure({str(model): _accumulate(table[model]) for model in table.columns}, shares)


def _count_interactions(run: RunTables, dataset: str) -> pd.Series | None:
    if run.popularity is None:
        return None
    frame = run.popularity[run.popularity["dataset"] == dataset]
    if frame.empty:
        return None
    frame = frame[np.isfinite(frame["interactions"].to_numpy(dtype=np.float64))]
    items = frame["item_id"].astype(object)
    counts: pd.Series = frame["interactions"].groupby(items, sort=False).sum()
    return counts


def _accumulate(counts: pd.Series) -> FloatArray:
    totals: FloatArray = counts.to_numpy(dtype=np.float64).cumsum()
    return totals / max(float(totals[-1]), 1.0)


_PROJECTION = "latent_projection"
MOST_CLOUD = 2400
_AXES = ("PC1", "PC2")
_LEFT, _RIGHT, _FOOT = 52.0, 468.0, 54.0  # of a projection

_Sets = Mapping[str, FloatArray]  # the points of each set, ``float64[n, 2]``


def draw_projections(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[svg.Plot]:
    """Yield a plot for each projection and model."""
    for metric in rows.find_metrics(run, _PROJECTION):
        units = _pair_components(rows.read_units(run, metric, dataset))
        units = rows.select_drawable(units, "x", "y")
        if units.empty:
            raise MissingEvidence(f"{metric.heading} has no point with both components")
        models = rows.sort_models(run, units["model"].unique().tolist())
        for model in models[: rows.MOST_MODELS]:
            plot = _draw_projection(units[units["model"] == model], model, name_file)
            yield rows.add_omitted(plot, models)


def _pair_components(units: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each point: ``model``, ``group``, ``unit_id``, ``x`` and ``y``."""
    keys = ["model", "group", "unit_id"]
    x, y = (units.loc[units["target"] == axis, [*keys, "value"]] for axis in _AXES)
    return x.rename(columns={"value": "x"}).merge(y.rename(columns={"value": "y"}), on=keys)


def _draw_projection(units: pd.DataFrame, model: str, name_file: rows.NameFile) -> svg.Plot:
    sets = {
        str(group): frame[["x", "y"]].to_numpy(np.float64)
        for group, frame in units.groupby("group", sort=False)
    }
    legend, bottom = svg.draw_legend([f"{group} ({len(each):,})" for group, each in sets.items()])
    top, height = svg.TOP - 8 + bottom, 432.0 + bottom
    axes = _make_square_axes(np.vstack(list(sets.values())), (top, height - _FOOT))
    means = {group: points.mean(axis=0) for group, points in sets.items()}
    return svg.Plot(
        name=name_file(f"projection-{model}"),
        title=f"Latent space of {model}",
        caption=_caption_projection(sets),
        height=height,
        body=join(
            axes.draw(
                svg.choose_ticks(axes.x.low, axes.x.high, 5),
                svg.choose_ticks(axes.y.low, axes.y.high, 5),
            ),
            *_draw_clouds(sets, len(units), axes),
            _draw_means(means, axes),
            svg.draw_title((8, top - 14), "second component"),
            svg.draw_title((_RIGHT, height - 10), "first component", class_="end"),
            legend,
        ),
    )


def _make_square_axes(points: FloatArray, span: tuple[float, float]) -> Axes:
    """Return axes on which one unit has the same length."""
    top, bottom = span
    lengths = _RIGHT - _LEFT, bottom - top
    ranges = [(*svg.pad_range(points[:, axis].tolist()), lengths[axis]) for axis in (0, 1)]
    unit = max((high - low) / length for low, high, length in ranges)
    x, y = (
        ((low + high - unit * length) / 2, (low + high + unit * length) / 2)
        for low, high, length in ranges
    )
    return Axes(Scale(*x, _LEFT, _RIGHT), Scale(*y, bottom, top))


def _draw_clouds(sets: _Sets, total: int, axes: Axes) -> Iterator[Safe]:
    """Yield the points of each set, every n-th if there are too many."""
    step = max(1, -(-total // MOST_CLOUD))
    for series, points in enumerate(sets.values()):
        colour, shape = svg.choose_look(series)
        for x, y in points[::step].tolist():
            yield svg.draw_marker(axes.at(x, y), shape, f"dot cloud {colour}", radius=2.1)


def _draw_means(means: Mapping[str, FloatArray], axes: Axes) -> Safe:
    """Return a large labelled mark at the mean of each set."""
    centres = {group: axes.at(x, y) for group, (x, y) in means.items()}
    texts = svg.draw_labels(
        list(centres.values()),
        [svg.shorten(group, 26) for group in centres],
        (_LEFT, axes.y.end, _RIGHT, axes.y.start),
        itertools.repeat("halo name"),
        gap=13,
    )
    elements = []
    for series, ((group, centre), text) in enumerate(zip(centres.items(), texts, strict=True)):
        colour, shape = svg.choose_look(series)
        class_ = f"dot centre {colour}"
        title = f"mean of {group}: {means[group][0]:.3g}, {means[group][1]:.3g}"
        elements += [text, svg.draw_marker(centre, shape, class_, radius=6.5, title=title)]
    return join(*elements)


def _caption_projection(sets: _Sets) -> str:
    sentences = [
        "Vectors on the first two principal components, with the same unit on both axes.",
        "Large marks are the means of the sets.",
    ]
    n_points = sum(map(len, sets.values()))
    if n_points > MOST_CLOUD:
        sentences.append(f"Of {n_points:,} points every n-th is drawn.")
    return " ".join(sentences)


_OF_RANKS = ("REC-ST", "MRR_BAD")
_ROW, _LONGEST = 30.0, 22


@dataclass(frozen=True)
class _Box:
    """Quartiles, ends of the whiskers, mean and number of values."""

    low: float
    q1: float
    median: float
    q3: float
    high: float
    mean: float
    n: int


def compute_box(values: FloatArray) -> _Box:
    """Return the box of values; whiskers reach the last value within 1.5 interquartile ranges.

    >>> compute_box(np.array([0.0, 1.0, 2.0, 3.0, 14.0]))
    _Box(low=0.0, q1=1.0, median=2.0, q3=3.0, high=3.0, mean=4.0, n=5)
    """
    q1, median, q3 = (float(value) for value in np.quantile(values, (0.25, 0.5, 0.75)))
    reach = 1.5 * (q3 - q1)
    inside = values[(values >= q1 - reach) & (values <= q3 + reach)]
    low, high = float(inside.min()), float(inside.max())
    return _Box(low, q1, median, q3, high, float(values.mean()), int(values.size))


def draw_stereotypes(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[svg.Plot]:
    """Yield box plots for each metric of the ranks of labelled items, query group and target."""
    for metric in (metric for name in _OF_RANKS for metric in rows.find_metrics(run, name)):
        if metric.parameters.get("gap") is not None:
            continue
        units = rows.read_units(run, metric, dataset)
        units = rows.select_drawable(units, "value")
        if units.empty:
            raise MissingEvidence(f"{metric.heading} has no value of a user")
        for (group, target), part in units.groupby(["group", "target"], sort=False):
            boxes = {
                str(model): compute_box(values.to_numpy(np.float64))
                for model, values in part.groupby("model", sort=False)["value"]
            }
            if boxes:
                suffix = ", ".join(filter(None, [str(group), str(target)]))
                name = name_file(f"exposure-{metric.title}-{suffix}")
                yield _draw_boxes(metric, boxes, suffix, name)


def _draw_boxes(metric: Definition, boxes: Mapping[str, _Box], suffix: str, name: str) -> svg.Plot:
    ranked = sorted(boxes, key=lambda model: (boxes[model].mean, model))
    height = svg.TOP + _ROW * len(ranked) + 64
    scale = _make_box_scale(boxes)
    note = rows.describe_direction(metric)
    elements = [svg.draw_row_axis(scale, svg.TOP, metric.heading, note, height), _draw_box_key()]
    labels = svg.shorten_all(ranked, _LONGEST)
    for position, (model, label) in enumerate(zip(ranked, labels, strict=True)):
        y = svg.TOP + (position + 0.5) * _ROW
        elements += [
            svg.draw_text((scale.start - 10, y + 4.5), label, "end"),
            svg.draw_text(
                (svg.width() - svg.MARGIN, y + 4.5), _format_count(boxes[model]), "tick end"
            ),
            _draw_box(boxes[model], model, scale, y),
        ]
    return svg.Plot(
        name=name,
        title=f"{metric.heading} of each user's list" + (f", {suffix}" if suffix else ""),
        caption=(
            "Each box holds the middle half of a model's values; whiskers reach the last value "
            "within 1.5 times its length. Models are sorted by mean."
        ),
        height=height,
        body=join(*elements),
    )


def _make_box_scale(boxes: Mapping[str, _Box]) -> Scale:
    low = min(box.low for box in boxes.values())
    high = max(max(box.high, box.mean) for box in boxes.values())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    labels = max(map(svg.estimate_width, svg.shorten_all(boxes, _LONGEST)))
    counts = max(svg.estimate_width(_format_count(box)) for box in boxes.values())
    return Scale(low, high, 18 + labels, svg.width() - svg.MARGIN - counts - 14)


def _format_count(box: _Box) -> str:
    return f"n {box.n:,}"


def _draw_box(box: _Box, model: str, scale: Scale, y: float) -> Safe:
    title = (
        f"{model}: mean {box.mean:.3f}, median {box.median:.3f}, half of the users between "
        f"{box.q1:.3f} and {box.q3:.3f}, n {box.n:,}"
    )
    q1, median, q3 = (scale.at(value) for value in (box.q1, box.median, box.q3))
    elements = []
    for end, quartile in ((scale.at(box.low), q1), (scale.at(box.high), q3)):
        elements += [
            svg.draw_line((end, y), (quartile, y), "interval c0"),
            svg.draw_line((end, y - 4), (end, y + 4), "interval c0"),
        ]
    return join(
        *elements,
        svg.draw_rectangle((q1, y - 9), (max(q3 - q1, 0.5), 18), "box", title),
        svg.draw_line((median, y - 9), (median, y + 9), "median"),
        svg.draw_marker((scale.at(box.mean), y), svg.DIAMOND, "mean", radius=3.8),
    )


def _draw_box_key() -> Safe:
    return join(
        svg.draw_marker((12, 12), svg.DIAMOND, "mean", radius=3.8),
        svg.draw_text((21, 16), "mean"),
        svg.draw_line((76, 5), (76, 20), "median"),
        svg.draw_text((84, 16), "median"),
    )


_ORDER_SEED = 0  # the seed of the order of the items
_FEWEST, _FIRST, _STEPS_OF_MEAN = 30, 10, 120
_OF_POPULARITY = "log_popularity_difference"


def draw_popularity_means(
    run: RunTables, dataset: str, name_file: rows.NameFile
) -> Iterator[svg.Plot]:
    """Yield the running means of the items' popularity and of its logarithm, in the first fold.

    There are none without ``log_popularity_difference``, or for too few items or equal ones only.
    """
    counts = _read_counts(run, dataset)
    counts = np.random.default_rng(_ORDER_SEED).permutation(counts[counts > 0])
    has_metric = rows.find_metrics(run, _OF_POPULARITY)
    if not has_metric or counts.size < _FEWEST or np.ptp(counts) == 0:
        return
    steps = np.unique(np.linspace(_FIRST, counts.size, _STEPS_OF_MEAN).round().astype(int))
    curves = {
        label: np.cumsum(values)[steps - 1] / steps / values.mean()
        for label, values in (("popularity", counts), ("log popularity", np.log(counts)))
    }
    heights = svg.pad_range(np.concatenate([*curves.values()]).tolist())
    axes = svg.make_axes((0, counts.size), heights)
    lines = {
        label: svg.Curve([*map(axes.at, steps.tolist(), curve.tolist())], number)
        for number, (label, curve) in enumerate(curves.items())
    }
    yield svg.draw_chart(
        axes,
        svg.draw_curves(lines, axes.frame),
        x_title=("Items", "in random order"),
        y_title=("Running mean", "divided by the mean of all items"),
        name=name_file("popularity-means"),
        title="Mean popularity as items are added",
        caption=(
            f"The mean over the first items, from {_FIRST} on, of the training interactions and "
            f"of their natural logarithm, in one random order (seed {_ORDER_SEED}). A jump is a "
            "single item that changes the mean of all before it: where popularity has a heavy "
            "tail, its mean settles late or never, that of its logarithm soon."
        ),
    )


def _read_counts(run: RunTables, dataset: str) -> FloatArray:
    """Return the interactions of each item, ``float64[n_items]``, in the first seed and fold."""
    if run.popularity is None:
        return np.empty(0)
    frame = run.popularity[run.popularity["dataset"] == dataset]
    for column in ("seed", "fold"):
        frame = frame[frame[column] == frame[column].iloc[0]] if len(frame) else frame
    counts: FloatArray = frame["interactions"].to_numpy(dtype=np.float64)
    return counts[np.isfinite(counts)]
