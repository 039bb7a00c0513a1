"""Why a gap exists: what the groups differ in, who is worst off, and what would halve it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.claims.interventions import Gap, Intervention, intervene
from recbias.core.dataset import (
    AnyArray,
    Attributes,
    BoolArray,
    Dataset,
    FloatArray,
    Interactions,
    Queries,
    Split,
)
from recbias.core.errors import MissingEvidence, NothingLeft, WrongType
from recbias.core.grouping import split_crossing
from recbias.reports import pages
from recbias.reports.examples import EXAMPLE_COLUMNS, TEXTS, Stages, choose_models, select_scores
from recbias.reports.run import read_run, to_records
from recbias.reports.svg import Plot
from recbias.runner.plan import RunOptions
from recbias.runner.verdicts import code_pair
from recbias.runs.tables import Run, load
from recbias.statistics.decomposition import (
    METHODS,
    add_curves,
    decompose_gap,
    find_honest_groups,
)
from recbias.statistics.multiverse import Contrasts, estimate

_KEYS = ("dataset", "seed", "fold")
_PARTS = ["method", "property", "part", "ci_low", "ci_high", "share"]
_RARE = 0.2
"""Rare items are the least popular ones with this share of the interactions."""

_MOST_VALUES = 30
"""The largest number of values of a label, or of an attribute of items, that is a property."""

_N_EXAMPLES = 10
_REST = "not explained"
_NOUNS = {
    "size": "equal numbers of users in both groups",
    "length": "equal lengths of history",
    "popularity": "equal popularity of histories",
    "worst": "settings tuned for the worst group",
    "seed": "another seed",
}
_LOG, _ROUNDING = "log of ", 1e-9
_ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class Explanation:
    """What a gap between two groups comes from.

    Args:
        gap: The gap of the model: ``metric``, ``model``, ``by``, ``a`` and ``b`` (the group with
            the higher mean first), ``mean_a``, ``mean_b``, ``n_a``, ``n_b``, ``difference``,
            ``ci_low``, ``ci_high`` and ``p``.
        parts: For each method (``regression``, ``reweighting``) the part of the gap that each
            property explains and the rest, with 95% intervals; they add up to the gap. Empty where
            the interval of the gap holds 0; on request they are there, without their shares. They
            are associations, not effects.
        properties: The mean of each property in both groups.
        worst: The groups of an honest tree over the properties, the lowest mean first.
        examples: Users of the worst group that is significant, with their lists.
        changes: The other models of the run: their gap, their mean, and the tested differences.
        interventions: The effect on the gap of training again on equalised data, of each
            intervention by its Shapley value; empty without ``retrain``.
        notes: What was left out.
        scope: What is explained, if the run has several: ``of one, seed 1, fold 1``.
    """

    gap: Mapping[str, Any]
    parts: pd.DataFrame
    properties: pd.DataFrame
    worst: pd.DataFrame
    examples: pd.DataFrame
    changes: pd.DataFrame
    interventions: pd.DataFrame = field(default_factory=pd.DataFrame)
    notes: Sequence[str] = field(default_factory=tuple)
    scope: str = ""

    @property
    def sentences(self) -> list[str]:
        """The answer in sentences."""
        return [*_list_sentences(self)]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by name."""
        return {name: getattr(self, name) for name in pages.TITLES}

    @property
    def plots(self) -> dict[str, Plot]:
        """The plots by table: ``parts``, ``interventions``, ``changes``; those there are."""
        return pages.draw_explanation(self.gap, self.parts, self.interventions, self.changes)

    def write(self, folder: Path | str) -> None:
        """Write ``report.html``, ``report.md``, ``explanation.json`` and the plots to a folder."""
        pages.write_explanation(
            Path(folder),
            gap=self.gap,
            sentences=self.sentences,
            notes=self.notes,
            tables=self.tables,
        )

    def __str__(self) -> str:
        """Return the answer in sentences."""
        return "\n".join(self.sentences)


def explain(  # noqa: PLR0913, PLR0915  as keywords; one step after the other
    run: Run | Path | str,
    gap: str,
    *,
    model: str | None = None,
    groups: Sequence[str] = (),
    anyway: bool = False,
    retrain: Sequence[Intervention] = (),
    data: Path | str | None = None,
    out: Path | str = "results",
) -> Explanation:
    """Explain the gap of a metric between two groups of users.

    Only the first dataset, seed and fold of a run are read, which is said if there are others. The
    properties of users are the number of items in their history and in the test set, the mean
    popularity of the history, its share of rare items, the entropy of its genres, and their other
    labels.

    Args:
        run: A run, a run folder, or the name of an experiment.
        gap: The metric and the label: ``nDCG by gender``.
        model: The model; by default the one with the best mean.
        groups: The two groups, if the label has more.
        anyway: Explain a gap whose interval holds 0 too.
        retrain: Interventions after which the model is trained again, once for each subset of
            them: ``size``, ``length``, ``popularity``, ``worst`` or ``seed``; see
            ``recbias.claims.interventions``.
        data: The folder of datasets, for ``retrain``; as that of ``recbias.run``.
        out: The folder in which experiments are looked up by name.

    Raises:
        MissingEvidence: The run has no values of single users, or its stored stages are gone.
        Contradiction: The label has other than two groups, and none are named.
        NothingLeft: A group has fewer than two users with a value.

    Example:
        recbias.explain("quickstart", "nDCG by gender").parts
    """
    name, _, by = (part.strip() for part in gap.partition(" by "))
    if not (name and by):
        message = f"{gap!r} is not a metric by a label"
        raise WrongType(message, where="--gap", remedy='write --gap "nDCG by gender"')
    tables = read_run((run if isinstance(run, Run) else load(run, out)).folder)
    scores, direction = select_scores(tables, name)
    scores = scores.astype(dict.fromkeys(TEXTS, str))
    keys = {key: scores[key].iloc[0] for key in _KEYS}
    scope = ", ".join(
        value if key == "dataset" else f"{key} {value}"
        for key, value in keys.items()
        if (scores[key] != value).any()
    )
    scores = scores[(scores[[*_KEYS]] == [*keys.values()]).all(axis=1)]
    stages = Stages(tables, keys)
    queries, split, dataset = stages.queries, stages.split, stages.dataset
    if queries is None or split is None or dataset is None:
        raise MissingEvidence("the stored stages of the run are gone", remedy="run its spec again")
    losses = {"higher": -scores["value"], "lower": scores["value"]}
    scores = scores.assign(loss=losses.get(direction, scores["value"].abs()))
    (label,) = choose_models(tables, scores, [model] if model else ())[:1]
    wide = scores.pivot_table(index="unit_id", columns="model", values="value", sort=False)
    wide = wide.reindex(queries.ids.ids)
    codes, names = code_pair(queries, by, groups)
    values = wide[label].to_numpy(dtype=np.float64)
    used = ~np.isnan(values) & (codes >= 0)
    of_gap, is_flipped = _describe_gap(values[used], codes[used] == 1, names)
    codes = np.where(codes >= 0, 1 - codes, codes) if is_flipped else codes
    described = {**of_gap, "metric": str(scores["metric"].iloc[0]), "model": label, "by": by}
    in_a = codes[used] == 1
    properties, notes = _collect_properties(queries, split, dataset, by, used, in_a)
    columns = pd.concat([pd.DataFrame(index=range(int(used.sum()))), *properties.values()], axis=1)
    parts = pd.DataFrame(columns=_PARTS)
    if anyway or described["ci_low"] > 0:
        parts = _explain_parts(values[used], in_a, properties)
        if described["ci_low"] <= 0:
            parts["share"] = math.nan
        reason = "the groups differ too much, or are too small, to be made alike"
        undefined = parts.loc[parts["part"].isna(), "method"].unique()
        notes += [f"{method} is undefined: {reason}" for method in undefined]
    means = {"property": [*columns]}
    means |= {
        described[side]: columns[rows].mean().tolist()
        for side, rows in (("a", in_a), ("b", ~in_a))
    }
    sign = 1.0 if direction == "higher" else -1.0
    worst, rows = _find_worst(sign * values[used], columns)
    worst[["mean", "others", "difference"]] *= sign
    members = [str(unit) for unit in wide.index.to_numpy()[used][rows]]
    stages.read_lists(members)
    rows_of = (scores[scores["unit_id"] == unit] for unit in members)
    described_units = (
        stages.describe(np.array([unit, "", ""]), own, label)
        for unit, own in zip(members, rows_of, strict=True)
    )
    examples = [*filter(None, described_units)]
    changed = pd.DataFrame()
    if retrain:
        k = scores["k"].iloc[0]
        cutoff = None if math.isnan(k) else int(k)
        asked = Gap(described["metric"], cutoff, by, (described["a"], described["b"]), label)
        options = RunOptions(
            out=tables.folder.parent.parent, data=data, limit=tables.manifest.get("limit")
        )
        changed = intervene(tables.folder / "spec.yaml", asked, retrain, options)
    return Explanation(
        interventions=changed,
        gap=described,
        parts=parts,
        properties=pd.DataFrame(means),
        worst=worst,
        examples=pd.DataFrame(examples, columns=list(EXAMPLE_COLUMNS) if examples else None),
        changes=_compare_models(wide, label, codes, sign),
        notes=notes,
        scope=f"of {scope}" if scope else "",
    )


def _describe_gap(
    values: FloatArray, in_first: BoolArray, names: Sequence[str]
) -> tuple[dict[str, Any], bool]:
    """Return the gap, the group with the higher mean first, and whether that is the second."""
    for name, rows in zip(names, (in_first, ~in_first), strict=True):
        if np.count_nonzero(rows) < 2:
            raise NothingLeft(f"{name} has fewer than two users with a value", where="--gap")
    is_flipped = bool(values[in_first].mean() < values[~in_first].mean())
    in_a = in_first ^ is_flipped
    estimates = estimate(Contrasts(values[None], None, in_a[None].astype(np.int8)))
    a, b = names[::-1] if is_flipped else names
    gap = {
        "a": a,
        "b": b,
        "mean_a": float(values[in_a].mean()),
        "mean_b": float(values[~in_a].mean()),
        "difference": float(estimates.value[0]),
        "ci_low": float(estimates.ends[0][0]),
        "ci_high": float(estimates.ends[1][0]),
        "p": float(estimates.p[0]),
        "n_a": int(in_a.sum()),
        "n_b": int((~in_a).sum()),
    }
    return gap, is_flipped


# ---- properties of users ----


def _collect_properties(
    queries: Queries, split: Split, dataset: Dataset, by: str, used: BoolArray, in_a: BoolArray
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Return the columns of each property, a row for each user, and which are left out."""
    users = queries.ids.ids[used]
    numbers = _describe_histories(split.train, users)
    if split.test is not None:
        numbers[f"{_LOG}test items"] = np.log1p(_take(split.test, split.test.user_counts(), users))
    if dataset.items is not None:
        numbers |= _describe_tastes(split.train, users, dataset.items)
    properties = {name: pd.DataFrame({name: column}) for name, column in numbers.items()}
    properties |= _encode_labels(queries.labels, by, used)
    left_out = list[str]()
    for name in [*properties]:
        own = properties[name]
        of_a, of_b = own[in_a], own[~in_a]
        varies = (of_a != of_a.iloc[0]).any() & (of_b != of_b.iloc[0]).any()
        left_out += [*own.columns[~varies]]
        properties[name] = own.loc[:, varies]
        if properties[name].empty:
            del properties[name]
    same = f"the same for all users of a group, so left out: {', '.join(left_out)}"
    return properties, [same] if left_out else []


def _take(
    rows: Interactions, of_user: AnyArray, users: AnyArray, missing: float = 0.0
) -> FloatArray:
    """Return the values of users by their ids; ``missing`` for those without interactions."""
    return np.append(of_user.astype(np.float64), missing)[rows.user_ids.find(users)]


def _describe_histories(train: Interactions, users: AnyArray) -> dict[str, FloatArray]:
    counts = train.item_counts().astype(np.float64)
    order = np.argsort(counts, kind="stable")
    is_rare = np.zeros(len(counts), dtype=np.float64)
    is_rare[order[np.cumsum(counts[order]) <= _RARE * counts.sum()]] = 1.0
    popularity = np.log(np.maximum(counts, 1.0))

    def average(of_item: FloatArray) -> FloatArray:
        """Return the mean of each user, that of all interactions where there are none."""
        sizes, rows = train.user_counts(), of_item[train.items]
        sums = np.bincount(train.users, rows, minlength=train.n_users)
        overall = float(rows.mean()) if len(rows) else 0.0
        means = np.where(sizes > 0, sums / np.maximum(sizes, 1), overall)
        return _take(train, means, users, overall)

    return {
        f"{_LOG}history length": np.log1p(_take(train, train.user_counts(), users)),
        "popularity of the history": average(popularity),
        "share of rare items": average(is_rare),
    }


def _describe_tastes(
    train: Interactions, users: AnyArray, items: Attributes
) -> dict[str, FloatArray]:
    """Return the entropy of the first attribute with several values an item, such as genres."""
    from scipy.sparse import coo_array

    for name in items.names:
        column = items.frame[name]
        if column.dtype.kind == "f" or not column.astype(str).str.contains("|", regex=False).any():
            continue
        members = items.categories(name)
        if len(members.values) > 2 * _MOST_VALUES:
            continue
        at = items.ids.find(train.item_ids.ids)[train.items]
        known = at >= 0
        pairs, shape = (train.users[known], at[known]), (train.n_users, len(items.ids))
        profiles = coo_array((np.ones(np.count_nonzero(known)), pairs), shape=shape).tocsr()
        own = members.matrix.astype(np.float64)
        weights = 1.0 / np.maximum(own.sum(axis=1), 1.0)
        totals = (profiles.multiply(weights[None, :]) @ own).toarray()
        shares = totals / np.maximum(totals.sum(axis=1, keepdims=True), 1e-12)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = -np.nansum(shares * np.log2(shares), axis=1)
        return {f"entropy of {name}": _take(train, entropy, users)}
    return {}


def _encode_labels(labels: Attributes, by: str, used: BoolArray) -> dict[str, pd.DataFrame]:
    """Return the other labels: numbers as they are, texts as one column for each value but one."""
    encoded = {}
    grouping = {re.split(r"\W", part.removeprefix("not "))[0] for part in split_crossing(by)}
    for name in labels.names:
        if name in grouping or name == "history_length":  # which is a property already
            continue
        column = labels.frame[name][used].reset_index(drop=True)
        if column.dtype.kind == "f" and not column.isna().any():
            encoded[name] = column.to_frame(name)
        elif 1 < column.nunique(dropna=False) <= _MOST_VALUES:
            texts = column.astype(str)
            encoded[name] = pd.get_dummies(texts, prefix=name, prefix_sep="=", drop_first=True)
    return encoded


# ---- parts, worst groups, changes ----


def _explain_parts(
    values: FloatArray, in_a: BoolArray, properties: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    columns = [part.to_numpy(dtype=np.float64) for part in properties.values()]
    curved, parts = add_curves(columns, in_a), []
    for method in METHODS:
        found = decompose_gap(values, in_a, curved, method)
        names, shares = [*properties, _REST], found.parts / found.gap
        rows = zip(names, found.parts, found.ci_low, found.ci_high, shares, strict=True)
        parts += [(method, *row) for row in rows]
    return pd.DataFrame(parts, columns=_PARTS)


def _find_worst(values: FloatArray, properties: pd.DataFrame) -> tuple[pd.DataFrame, AnyArray]:
    """Return the groups of an honest tree, and the worst members of the worst that is real."""
    numbers = ["mean", "others", "difference", "ci_low", "ci_high", "p", "p_adjusted"]
    members: AnyArray = np.empty(0, dtype=np.int64)
    if properties.empty or len(values) < 80:
        return pd.DataFrame(columns=["rule", "n", *numbers]), members
    rng = np.random.default_rng(0)
    leaves = find_honest_groups(values, properties.to_numpy(dtype=np.float64), rng)
    rows = [
        (
            " and ".join(_describe_condition(properties, *condition) for condition in leaf.rule),
            len(leaf.rows),
            *(getattr(leaf, name) for name in numbers),
        )
        for leaf in leaves
    ]
    real = [leaf for leaf in leaves if leaf.difference < 0 and leaf.p_adjusted < _ALPHA]
    if real:
        members = real[0].rows[np.argsort(values[real[0].rows], kind="stable")[:_N_EXAMPLES]]
    return pd.DataFrame(rows, columns=["rule", "n", *numbers]), members


def _describe_condition(properties: pd.DataFrame, at: int, sign: str, bound: float) -> str:
    """Return ``age <= 30`` (of a logarithm: its count), ``job=clerk`` or ``not job=clerk``."""
    name, column = properties.columns[at], properties.iloc[:, at]
    if column.dtype == bool:
        return f"{'not ' * (sign == '<=')}{name}"
    if name.startswith(_LOG):
        return f"{name.removeprefix(_LOG)} {sign} {math.floor(math.expm1(bound) + _ROUNDING)}"
    return f"{name} {sign} {bound:.3g}"


def _compare_models(wide: pd.DataFrame, label: str, codes: AnyArray, sign: float) -> pd.DataFrame:
    """Return the gap and the mean of each model, with their changes from those of one."""
    own, groups = wide[[label]].to_numpy(np.float64).T, np.asarray(codes, dtype=np.int8)[None]
    rows = []
    for name in wide.columns:
        other = wide[[name]].to_numpy(np.float64).T
        change = estimate(Contrasts(other, own, groups, absolute=True))
        price = estimate(Contrasts(other, own))
        rows.append(
            {
                "model": name,
                "gap": abs(float(estimate(Contrasts(other, None, groups)).value[0])),
                "mean": float(np.nanmean(other)),
                "gap_change": float(change.value[0]),
                "gap_change_p": float(change.p[0]),
                "mean_change": float(price.value[0]),
                "mean_change_p": float(price.p[0]),
            }
        )
    table = pd.DataFrame(rows).sort_values("gap", ignore_index=True)
    before = float(table.loc[table["model"] == label, "gap"].iloc[0])
    table["halves"] = table["gap"].le(before / 2)
    mean, gap = sign * table["mean"].to_numpy(), table["gap"].to_numpy()
    as_good = (mean[:, None] >= mean) & (gap[:, None] <= gap)
    better = as_good & ((mean[:, None] > mean) | (gap[:, None] < gap))
    table["frontier"] = [not each.any() for each in better.T]
    return table


def _answer(gap: Mapping[str, Any], parts: pd.DataFrame, scope: str) -> str:
    """Return the first sentence: the gap, and what accounts for it."""
    what = f"{gap['metric']} of {gap['model']}{f' ({scope})' if scope else ''}"
    text = f"{what} is {gap['difference']:.4f} higher for {gap['a']} than for {gap['b']}"
    if parts.empty:
        return f"{text}, but the interval holds 0: it may be chance, explained only on request."
    text += " (the interval holds 0)" if gap["ci_low"] <= 0 else ""
    known = parts[parts["property"] != _REST]
    if known.empty:
        return f"{text}; no measured property differs between users."
    sums = known.groupby("method", sort=False)["part"].sum(min_count=1).dropna()
    if sums.empty:
        return f"{text}; the groups differ too much, or are too small, to be made alike."
    told = " and ".join(
        f"{part:+.4f} by {method}"
        if gap["ci_low"] <= 0
        else f"{round(100 * part / gap['difference'])}% by {method}"
        for method, part in sums.items()
    )
    means = known.groupby("property", sort=False)["part"].mean()
    return f"{text}; measured properties account for {told}, most of all {means.abs().idxmax()}."


def _list_sentences(found: Explanation) -> Iterator[str]:
    gap = found.gap
    yield _answer(gap, found.parts, found.scope)
    yield (
        f"Means: {gap['a']} {gap['mean_a']:.4f} ({gap['n_a']:,} users), {gap['b']} "
        f"{gap['mean_b']:.4f} ({gap['n_b']:,}); interval of the gap {gap['ci_low']:.4f} to "
        f"{gap['ci_high']:.4f}."
    )
    if not found.parts.empty:
        yield "What properties account for is an association, not an effect."
    changes = to_records(found.interventions)
    for change in changes[1:-1]:
        yield (
            f"Trained again with {_NOUNS[change['change']]}, the gap changes by "
            f"{change['effect']:+.4f} [{change['ci_low']:.4f}, {change['ci_high']:.4f}]."
        )
    if changes and not math.isclose(changes[0]["effect"], gap["difference"], abs_tol=_ROUNDING):
        yield (
            f"Before this, the gap is {changes[0]['effect']:.4f} without the users who are left "
            "out of training, who are not measured."
        )
    real = found.worst[(found.worst["difference"] < 0) & (found.worst["p_adjusted"] < _ALPHA)]
    if not real.empty:
        row = real.iloc[0]
        yield (
            f"Worst off, tested on users the search had not seen: {row['rule']} "
            f"({row['n']:,} users, mean {row['mean']:.4f} against {row['others']:.4f}, corrected "
            f"p {row['p_adjusted']:.2g})."
        )
    if gap["ci_low"] <= 0:
        return
    halving = found.changes[found.changes["halves"] & (found.changes["model"] != gap["model"])]
    if halving.empty:
        yield "No other model of the run has half the gap."
        return
    cheapest = halving.loc[halving["mean_change"].idxmax()]
    yield (
        f"The cheapest model of the run with at most half the gap: {cheapest['model']}, gap "
        f"{cheapest['gap']:.4f} (change p {cheapest['gap_change_p']:.2g}), mean "
        f"{cheapest['mean_change']:+.4f} (p {cheapest['mean_change_p']:.2g})."
    )
