"""Metrics of the items recommended under each value of a label of the prompts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt, MinLen

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, Attributes, BoolArray, FloatArray, Ids, Matrix
from recbias.core.docstrings import InheritsSections
from recbias.core.errors import UnknownColumn
from recbias.core.evidence import Evidence
from recbias.core.measures import Bounds, Contrast, Direction, Measurement, UnitScores, limit_ends
from recbias.core.text import find_nearest, suggest
from recbias.metrics.base import Cutoff
from recbias.metrics.templates.design import (
    NEUTRAL,
    TEMPLATE,
    Design,
    SlotCounts,
    UnitChoice,
    average_levels,
    build_design,
    check_attribute,
    count_attribute_values,
    count_items,
    encode_templates,
    find_neutral_templates,
    group_queries,
    lacks_label,
    read_item_levels,
    require_items,
    warn_missing_attribute,
    warn_unlabelled,
)
from recbias.statistics.bootstrap import compute_group_means
from recbias.statistics.decomposition import PARTS, CrossedDesign, compute_sums_of_squares
from recbias.statistics.intervals import (
    arcsine_t_interval,
    bootstrap_interval,
    logit_t_interval,
)
from recbias.statistics.paired import cohens_d, cohens_dz
from recbias.statistics.permutation import (
    Exchange,
    Permutations,
    Statistic,
    permute_labels,
    permute_slots,
)

_Contrasts: TypeAlias = Mapping[tuple[int, int], tuple[Contrast, ...]]
"""The tests that belong to the estimate of a label value and a target."""

_MAX_PAIRED = 10
"""If a label has more values, each is compared with the rest instead of with each other."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two sides that are compared.

    Args:
        a: A label value, the first side.
        b: The label values of the second side: one, or the rest.
    """

    a: int
    b: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SideEstimates:
    """The estimates of both sides of each comparison.

    Args:
        a: Of the first side, ``float64[s, m]``.
        b: Of the second side, ``float64[s, m]``.
        samples: Their difference on each bootstrap sample, ``float64[S, b, s, m]``.
    """

    a: FloatArray
    b: FloatArray
    samples: FloatArray

    @classmethod
    def from_groups(
        cls, values: FloatArray, replicates: FloatArray, comparisons: Sequence[Comparison]
    ) -> SideEstimates:
        """Return the estimates of both sides; that of several label values is their mean.

        Args:
            values: The estimate of each label value, ``float64[g, m]``.
            replicates: On each bootstrap sample, ``float64[S, b, g, m]``.
            comparisons: The comparisons.
        """
        a = [comparison.a for comparison in comparisons]
        weights = np.zeros((len(comparisons), len(values)))
        for row, comparison in enumerate(comparisons):
            weights[row, comparison.b] = 1.0 / len(comparison.b)
        samples = replicates[..., a, :] - _average(weights, replicates)
        return cls(values[a], _average(weights, values), samples)

    def select(self, comparisons: Sequence[int]) -> SideEstimates:
        """Return the estimates of some of the comparisons."""
        rows = list(comparisons)
        return SideEstimates(self.a[rows], self.b[rows], self.samples[..., rows, :])


def list_comparisons(n_groups: int) -> list[Comparison]:
    """Return the comparisons of label values: up to ten in pairs, more each with the rest.

    >>> [(comparison.a, comparison.b) for comparison in list_comparisons(3)]
    [(0, (1,)), (0, (2,)), (1, (2,))]
    """
    if n_groups > _MAX_PAIRED:
        return list_rest_comparisons(range(n_groups))
    return [Comparison(a, (b,)) for a, b in combinations(range(n_groups), 2)]


def list_rest_comparisons(members: Sequence[int]) -> list[Comparison]:
    """Return the comparison of each label value with all others together.

    >>> [(comparison.a, comparison.b) for comparison in list_rest_comparisons([0, 1, 2])]
    [(0, (1, 2)), (1, (0, 2)), (2, (0, 1))]
    """
    return [Comparison(a, tuple(b for b in members if b != a)) for a in members]


def _average(weights: FloatArray, estimates: FloatArray) -> FloatArray:
    """Return weighted means, ``float64[..., s, m]``; NaN if an estimate with a weight is NaN."""
    means = weights @ np.nan_to_num(estimates)
    undefined = (weights > 0).astype(np.float64) @ np.isnan(estimates) > 0
    return np.asarray(np.where(undefined, np.nan, means))


@dataclass(frozen=True, eq=False)
class LabelEstimates:
    """The estimates of a metric for each label value and target.

    Args:
        values: ``float64[g, m]``.
        replicates: On each bootstrap sample of each set of slots, ``float64[S, b, g, m]``.
        n: The number of units of each estimate, ``int[g, m]``; 0 if it is undefined.
        undefined: The number of units that do not contribute.
        counts: The counts that determine each estimate, ``float64[g, m, ...]``.
    """

    values: FloatArray
    replicates: FloatArray
    n: AnyArray
    undefined: AnyArray
    counts: FloatArray

    def to_measurements(
        self, design: Design, targets: Sequence[str], tests: _Contrasts
    ) -> list[Measurement]:
        """Return one measurement for each label value and target, by label value."""
        combined, df = design.combine_samples(self.values, self.replicates)
        samples = np.moveaxis(combined, 0, -1)
        low, high = bootstrap_interval(self.values, samples, df)
        return [
            Measurement(
                value=float(self.values[group, column]),
                n=int(self.n[group, column]),
                undefined=int(self.undefined[group, column]),
                group=name,
                target=target,
                ci_low=float(low[group, column]),
                ci_high=float(high[group, column]),
                replicates=samples[group, column],
                df=float(df[group, column]),
                contrasts=tests.get((group, column), ()),
                counts=self.counts[group, column],
            )
            for group, name in enumerate(design.groups.names)
            for column, target in enumerate(targets)
        ]


def bootstrap_means(evidence: Evidence, design: Design, values: FloatArray) -> FloatArray:
    """Return the mean of each label value on each bootstrap sample, ``float64[S, b, g, c]``.

    Names are resampled within their label value, templates with all their units. If the words of
    several slots carry the label, there is a set of samples for each set of slots, otherwise one.
    The samples are the same for every model.
    """
    n_groups = len(design.groups.names)
    weights = design.sample_weights(evidence.n_bootstrap, evidence.rng())
    return np.stack(
        [compute_group_means(values, design.group, n_groups, sample) for sample in weights]
    )


_REST = "rest"
"""The name of all other label values together."""


class PermutationResults(NamedTuple):
    """The tests of several comparisons at several targets.

    Args:
        statistic: ``float64[s, m]``.
        p: Two-sided, ``float64[s, m]``; NaN if the test cannot be computed.
        n: The number of units of both sides of each, of templates if they are the units, or of
            words if those of several slots carry the label, ``int[s]``.
    """

    statistic: FloatArray
    p: FloatArray
    n: AnyArray


@dataclass(frozen=True, eq=False)
class _Layout:
    """The units of both sides of a comparison, by stratum, those of the first side first."""

    units: AnyArray
    sizes: AnyArray
    n_first: AnyArray
    observed: FloatArray


def run_permutation_tests(
    evidence: Evidence,
    design: Design,
    values: FloatArray,
    comparisons: Sequence[Comparison],
    statistic: Statistic,
    *,
    n_permutations: int,
) -> PermutationResults:
    """Return the permutation test of each comparison.

    Labels are permuted among the units of both sides that occur in the same templates. Strata with
    one side only carry no information and are excluded. If the words of several slots carry the
    label, the classes of the words of each slot are permuted. A comparison without exchangeable
    labels (a label value of one word, if words are the units) has no p-value and is counted in a
    warning.

    Args:
        evidence: The seed: all comparisons and models have the same permutations.
        design: The units.
        values: ``float64[u, c]``, without NaN.
        comparisons: The comparisons.
        statistic: From the means of both sides, ``(..., c)``, to ``(..., m)``.
        n_permutations: The number of sampled permutations.
    """
    settings: Any = {"n_permutations": n_permutations, "rng": evidence.rng()}
    if design.words is not None:
        labels = np.arange(len(design.groups.names))
        a = np.array([labels == comparison.a for comparison in comparisons])
        b = np.array([np.isin(labels, comparison.b) for comparison in comparisons])
        observed, p = permute_slots(values, design.crossing, (a, b), statistic, **settings)
        if np.isnan(p[~np.isnan(observed)]).any():
            _warn_no_p_value(evidence, design, len(comparisons))
        compared = (a | b)[:, design.group].T
        return PermutationResults(observed, p, design.count_units(compared)[0])
    layouts = [_lay_out(design, values, comparison, statistic) for comparison in comparisons]
    by_strata: dict[bytes, list[int]] = defaultdict(list)
    for row, layout in enumerate(layouts):
        by_strata[layout.sizes.tobytes() + layout.n_first.tobytes()].append(row)
    observed = np.stack([layout.observed for layout in layouts])
    p = np.full(observed.shape, np.nan)
    for rows in by_strata.values():
        exchange = Exchange.of_two(layouts[rows[0]].sizes, layouts[rows[0]].n_first)
        units, settings["rng"] = [layouts[row].units for row in rows], evidence.rng()
        p[rows] = permute_labels(
            values[np.stack(units)], observed[rows], exchange, statistic, **settings
        )
        if exchange.n_labellings == 1:
            _warn_no_p_value(evidence, design, len(rows))
    n = [layout.sizes.size if design.paired else layout.units.size for layout in layouts]
    return PermutationResults(observed, p, np.array(n))


def build_contrasts(
    design: Design,
    comparisons: Sequence[Comparison],
    results: PermutationResults,
    estimates: SideEstimates,
    effects: FloatArray | None = None,
) -> _Contrasts:
    """Return the rows of the tests, by label value and column of the target.

    The effect sizes are ``float64[s, m]``. There is no row if one of the estimates is undefined,
    and no interval if all samples have the same difference, other than 0.
    """
    difference = estimates.a - estimates.b
    samples, df = design.combine_samples(difference, estimates.samples)
    low, high = bootstrap_interval(difference, np.moveaxis(samples, 0, -1), df)
    lacks_spread = (low >= high) & (difference != 0)
    low, high = (np.where(lacks_spread, np.nan, end) for end in (low, high))
    sizes = np.full(difference.shape, np.nan) if effects is None else effects
    names = design.groups.names
    contrasts: dict[tuple[int, int], tuple[Contrast, ...]] = defaultdict(tuple)
    for row, column in zip(*np.nonzero(~np.isnan(difference)), strict=True):
        comparison, cell = comparisons[row], (row, column)
        b = _REST if len(comparison.b) > 1 else names[comparison.b[0]]
        columns = {"statistic": results.statistic, "p": results.p, "ci_low": low, "ci_high": high}
        columns |= {"difference": difference, "effect_size": sizes}
        others = {name: float(column[cell]) for name, column in columns.items()}
        sides, means = (names[comparison.a], b), (estimates.a[cell], estimates.b[cell])
        test = {"test": "permutation", "n": int(results.n[row])}
        contrast = Contrast.of_means("groups", sides, means, **test, **others)
        contrasts[comparison.a, int(column)] += (contrast,)
    return contrasts


def compute_ratio_gap(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the difference of the ratios of all columns but the last to the last."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(a[..., :-1] / a[..., -1:] - b[..., :-1] / b[..., -1:])


def _warn_no_p_value(evidence: Evidence, design: Design, n: int) -> None:
    message = f"{n:,} comparisons of {design.groups.by} have no p-value"
    warn(f"{evidence.metric}: {message}, since no labels can be permuted")


def _lay_out(
    design: Design, values: FloatArray, comparison: Comparison, statistic: Statistic
) -> _Layout:
    is_a = design.group == comparison.a
    is_b = np.isin(design.group, comparison.b)
    n_strata = int(design.stratum.max(initial=-1)) + 1
    n_a = np.bincount(design.stratum[is_a], minlength=n_strata)
    n_b = np.bincount(design.stratum[is_b], minlength=n_strata)
    mixed = (n_a > 0) & (n_b > 0)
    units = np.flatnonzero((is_a | is_b) & mixed[design.stratum])
    units = units[np.lexsort([~is_a[units], design.stratum[units]])]
    with np.errstate(invalid="ignore", divide="ignore"):
        sides = (values[units[is_a[units]]], values[units[is_b[units]]])
        observed = statistic(*(side.sum(axis=0) / np.float64(len(side)) for side in sides))
    return _Layout(units, (n_a + n_b)[mixed], n_a[mixed], observed)


@dataclass(frozen=True, kw_only=True)
class LabelMetric(InheritsSections):
    """A metric of an attribute of the items recommended under each value of a label.

    Args:
        label: A label of the queries, or a crossing of several.
        k: How many ranks of each list are evaluated; by default all.

    Where every query lacks the label, the value is undefined, and a warning says so: a dataset of
    several may have no such queries.

    Raises:
        UnknownColumn: The queries have no such label, or the items have no such column.
        NothingLeft: The label has one value only, or every item lacks the attribute.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})
    unit: ClassVar[str] = ""

    label: str
    attribute: str

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on labels and attributes only."""
        check_attribute(evidence, self.attribute)
        if not lacks_label(evidence, self.label):
            group_queries(evidence, self.label)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimates; one undefined estimate without a query."""
        evidence.need("lists")
        check_attribute(evidence, self.attribute)
        if not len(evidence.queries):
            return [Measurement(math.nan, n=0, undefined=0)]
        if lacks_label(evidence, self.label):
            warn(f"{evidence.metric}: no query carries the label {self.label!r}")
            return [Measurement(math.nan, n=0, undefined=len(evidence.queries))]
        return self._measure(evidence)

    def _measure(self, evidence: Evidence) -> Sequence[Measurement]:
        raise NotImplementedError


class UnitMetric(LabelMetric):
    """A metric whose statistics are those of units, such as the names that carry the label.

    Args:
        units: The units of the statistics: by default names, if each label value has several,
            otherwise templates.
        words: The column of the words that carry the label; by default it is detected.
        permutations: The number of sampled permutations; fewer possible ones are all enumerated.
    """

    count_names: ClassVar[tuple[str, ...]]
    """The names of the entries of ``Measurement.counts``, row by row."""

    def omitted_settings(self) -> frozenset[str]:
        """Return the settings of the tests, which do not change the value."""
        return frozenset({"permutations"})


_Only: TypeAlias = Literal["nightlife"] | Annotated[tuple[str, ...], MinLen(1)] | None
"""Attribute values, or the name of a packaged list of them."""


@dataclass(frozen=True, kw_only=True)
class Association(UnitMetric):
    """How much more often items of an attribute value are recommended under a label than without.

        f(c, D) = |I_c,D| / |I_D|
        B(c, l) = ( f(c, D_l) - f(c, D_l') ) / f(c, D)        difference, 0 is neutral
        B(c, l) = f(c, D_l) / f(c, D_l')                      ratio, 1 is neutral

    I_D are the positions in the lists of the queries D that hold an item with any value of the
    attribute, I_c,D those of value c; repeats count, and an item of several values counts for
    each. D_l are the queries of label value l, D_l' those of the other value (of all others, if
    there are more than two), D both together. Undefined (NaN) if c occurs in fewer than
    ``min_count`` positions, or never; the ratio also if c does not occur under l'.

    Units, intervals and tests are those of ``price_percentage``: the units are names or templates
    (or the words of each slot, if those of several carry the label together), labels are permuted
    among units of the same templates, and both forms test f(c, D_l) - f(c, D_l'). Of two label
    values only the first is tested, since the second gives the same test. ``n`` counts the units
    whose lists hold an item with the attribute, ``undefined`` the others.

    Args:
        attribute: A column of the items, usually with several values in a cell: ``a|b``.
        form: The difference or the ratio.
        only: The attribute values that are reported and tested, in upper or lower case; by default
            all. f remains the share of all positions, so that the estimates do not change; fewer
            tests are corrected for. ``nightlife`` is the paper's list of Yelp's categories of
            nightlife.
        min_count: Values in fewer positions, under all labels together, are undefined.

    Raises:
        UnknownColumn: No query carries the label, or no item the attribute or any value of
            ``only``.

    Range:
        Any number, neutral 0 (ratio: 1); undefined if c is not recommended.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, equations 2 and 3.
    """

    direction: ClassVar[Direction] = "zero"

    form: Literal["difference", "ratio"] = "difference"
    only: _Only = None
    min_count: Annotated[int, Ge(1)] = 1
    units: UnitChoice = "auto"
    words: str | None = None
    permutations: Permutations = 10_000
    k: Cutoff = None

    def __post_init__(self) -> None:
        """Set the direction of a ratio, whose neutral value is 1, to ``none``."""
        if self.form == "ratio":
            object.__setattr__(self, "direction", "none")

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on labels and attributes only."""
        super().check(evidence)
        if self.only is not None:
            items: Attributes = evidence.items  # type: ignore[assignment]  # checked above
            _match_values(self.only, self.attribute, items.membership(self.attribute).values)
        build_design(evidence, self.label, self.units, self.words)

    count_names = ("positions", "elsewhere", "of_all", "of_all_elsewhere")
    """The positions of value c under l and under other labels, then those of any value."""

    def of_counts(self, counts: FloatArray) -> float:
        """Return the score from counts summed over datasets, ``float64[2, 2]``."""
        return float(self._score(counts[0, 0], counts[0, 1], counts[1, 0], counts[1, 1]))

    def _measure(self, evidence: Evidence) -> Sequence[Measurement]:
        design = build_design(evidence, self.label, self.units, self.words)
        slots = count_attribute_values(evidence, design, self.attribute, k=self.k)
        slots = self._restrict(evidence, slots)
        values = np.column_stack([slots.counts, slots.positions])
        estimates, sides = self._estimate(evidence, design, values)
        if n_rare := int(np.count_nonzero(slots.counts.sum(axis=0) < self.min_count)):
            limit = "no" if self.min_count == 1 else f"fewer than {self.min_count:,}"
            is_one = n_rare == 1
            message = f"{'value occurs' if is_one else 'values occur'} in {limit} positions"
            message += f" and {'has' if is_one else 'have'} no score"
            warn(f"{evidence.metric}: {n_rare:,} {self.attribute} {message}")
        n_groups = len(design.groups.names)
        comparisons = list_rest_comparisons(range(n_groups))[: 1 if n_groups == 2 else None]
        results = run_permutation_tests(
            evidence,
            design,
            values,
            comparisons,
            compute_ratio_gap,
            n_permutations=self.permutations,
        )
        targets = [f"{self.attribute}={value}" for value in slots.values]
        sides = sides.select([pair.a for pair in comparisons])
        contrasts = build_contrasts(design, comparisons, results, sides)
        return estimates.to_measurements(design, targets, contrasts)

    def _estimate(
        self, evidence: Evidence, design: Design, values: FloatArray
    ) -> tuple[LabelEstimates, SideEstimates]:
        """Return the scores of all label values, and the shares f that determine them."""
        n_groups = len(design.groups.names)
        sizes = np.bincount(design.group, minlength=n_groups)[:, None]
        sums = sizes * compute_group_means(values, design.group, n_groups)
        samples = sizes * bootstrap_means(evidence, design, values)
        counts = _split(sums)
        scores = self._score(*counts)
        n_with, n_without = design.count_units(values[:, -1:] > 0)
        n = np.where(np.isnan(scores), 0, n_with)
        estimates = LabelEstimates(
            values=scores,
            replicates=self._score(*_split(samples)),
            n=n,
            undefined=n_with + n_without - n,
            counts=np.stack([np.stack(counts[:2], -1), np.stack(counts[2:], -1)], axis=-2),
        )
        a, b = _compute_shares(sums)
        gap = np.subtract(*_compute_shares(samples))
        return estimates, SideEstimates(np.where(np.isnan(scores), np.nan, a), b, gap)

    def _score(self, *counts: FloatArray) -> FloatArray:
        """Return B from the counts of value c under l and l', and of any value under both."""
        at, at_rest, total, total_rest = (np.asarray(count) for count in counts)
        with np.errstate(invalid="ignore", divide="ignore"):
            share, rest = at / total, at_rest / total_rest
            overall = (at + at_rest) / (total + total_rest)
            scores = share / rest if self.form == "ratio" else (share - rest) / overall
        return np.where((at + at_rest < self.min_count) | np.isinf(scores), np.nan, scores)

    def _restrict(self, evidence: Evidence, slots: SlotCounts) -> SlotCounts:
        """Return the counts of the reported values; the number of all positions stays."""
        if self.only is None:
            return slots
        columns, unknown = _match_values(self.only, self.attribute, slots.values)
        if unknown and not isinstance(self.only, str):  # data has few values of a packaged list
            message = f"no item has these {self.attribute} of only: {', '.join(unknown)}"
            warn(f"{evidence.metric}: {message}")
        values = tuple(slots.values[column] for column in columns)
        return replace(slots, values=values, counts=slots.counts[:, columns])


def _split(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the counts of each value under l and l', and of any value: ``[..., g, m]`` each."""
    at, total = sums[..., :-1], np.broadcast_to(sums[..., -1:], sums[..., :-1].shape)
    at_rest = at.sum(axis=-2, keepdims=True) - at
    return at, at_rest, total, total.sum(axis=-2, keepdims=True) - total


def _compute_shares(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    at, at_rest, total, total_rest = _split(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        return at / total, at_rest / total_rest


@cache
def load_packaged_values(name: str) -> tuple[str, ...]:
    """Return the attribute values of a packaged list, such as ``nightlife``."""
    text = (
        files("recbias")
        .joinpath("metrics", "templates", "packaged", f"{name}.txt")
        .read_text("utf-8")
    )
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def _match_values(
    only: str | tuple[str, ...], attribute: str, values: Sequence[str]
) -> tuple[list[int], list[str]]:
    """Return the indices of the values named by ``only``, and the names without a value.

    Upper and lower case are equal.

    Raises:
        UnknownColumn: No value is named; ``where`` is ``only``.
    """
    names = load_packaged_values(only) if isinstance(only, str) else only
    folded = {name.casefold() for name in names}
    matches = [index for index, value in enumerate(values) if value.casefold() in folded]
    if not matches:
        nearest = dict.fromkeys(
            value for name in names for value in find_nearest(name, values, limit=1)
        )
        remedy = f"did you mean {' or '.join(list(nearest)[:3])}?"
        remedy = remedy if nearest else suggest(" ".join(names), values)
        message = f"no item has any {attribute} listed in only"
        raise UnknownColumn(message, where="only", remedy=remedy)
    known = {values[index].casefold() for index in matches}
    return matches, [name for name in names if name.casefold() not in known]


@dataclass(frozen=True, kw_only=True)
class AttributeShare:
    """The share of the recommendations, or of the items, that have each value of an attribute.

        share(m) = (1 / |Q|) Σ_{q in Q} |I_{q,m}| / |I_q|

    I_q are the items in the list of query q that have a value of the attribute, and I_{q,m} those
    with the value m: the share of recommended restaurants at each price. With ``of: items`` there
    is one I, the items of the dataset, whatever a model recommends. An item of several values
    counts for each of them. Items outside the catalogue or without a value are excluded and
    counted in a warning. Undefined for a query whose list has no item with a value.

    Args:
        attribute: A column of the items.
        of: ``lists`` or ``items``.
        k: How many ranks of each list are evaluated; by default all.

    Raises:
        UnknownColumn: The items have no such column.
        NothingLeft: Every item lacks the attribute.

    Range:
        0 to 1; undefined without an item that has a value.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, table 4.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = ""

    attribute: str
    of: Literal["lists", "items"] = "lists"
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return frozenset({"items", "lists"} if self.of == "lists" else {"items"})

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on the attribute only."""
        check_attribute(evidence, self.attribute)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the share of each value, in the order of the values."""
        check_attribute(evidence, self.attribute)
        membership = require_items(evidence).membership(self.attribute)
        matrix = membership.matrix.astype(np.float64)
        has_value: BoolArray = np.asarray(matrix.sum(axis=1)).ravel() > 0
        if self.of == "items":
            values = np.where(has_value[:, None], matrix.toarray(), np.nan)
            ids = evidence.item_ids.ids
            estimates = [
                Measurement.from_units(UnitScores("item", ids, column)) for column in values.T
            ]
        else:
            shares = self._compute_shares(evidence, matrix, has_value)
            estimates = [evidence.measure_queries(column) for column in shares.T]
        return [
            replace(estimate, target=f"{self.attribute}={value}")
            for value, estimate in zip(membership.values, estimates, strict=True)
        ]

    def _compute_shares(
        self, evidence: Evidence, matrix: Matrix, has_value: BoolArray
    ) -> FloatArray:
        """Return the share of each value in each list, ``float64 (q, m)``."""
        n_queries = len(evidence.queries)
        items = count_items(evidence, np.arange(n_queries), n_queries, k=self.k)
        warn_missing_attribute(evidence, items, has_value, self.attribute)
        positions = items @ has_value.astype(np.float64)
        with np.errstate(invalid="ignore"):
            return np.asarray((items @ matrix).toarray() / positions[:, None])


@dataclass(frozen=True, kw_only=True)
class MeanAttribute(UnitMetric):
    """The mean level of an attribute (the price, 1 to 4) of the items recommended under a label.

        M(l) = (1 / |U_l|) Σ_{u in U_l} v(u),    v(u) = mean level over the positions of u's lists

    U_l are the units of label value l: the names (or pairs of words) that carry it, or the
    templates if one word carries it (a location). A text of one repeated symbol, ``$`` to
    ``$$$$``, is the number of symbols; other columns must be numeric. Repeats count. Items without
    a level or outside the catalogue, and queries without the label, are excluded and counted in a
    warning. v is undefined (NaN) for a unit whose lists hold no item with a level.

    The interval is Student's t over the units: it holds for other words (or sentences) like these,
    all else fixed. Tests permute labels over the units that occur in the same templates; if
    templates are the units, between the label values of one template, which for two values is the
    sign-flip test. If the words of several slots carry the label together (``orientation``), the
    units are pairs that share words: the words of each slot are resampled separately, within their
    class (gender), and these classes are permuted over the words of each slot; ``n`` counts the
    words of all slots. If not every combination of such words occurs in the same templates, there
    is no interval and no test, and a warning reports it. Up to ten label values are compared in
    pairs, more of them each with the rest. The effect size is the difference divided by the pooled
    standard deviation of the units, or by that of their differences if they are templates.

    If the templates also occur without a word (``neutral: true`` of the templates), the group
    ``neutral`` is the mean over these templates: M over the templates in which the label's words
    occur, a reference for the labels. It is not a label and in no test.

    Args:
        attribute: A numeric column of the items, or one of repeated signs.

    Raises:
        UnknownColumn: No query carries the label, or the items have no such column of levels.

    Range:
        Any number, of the attribute; undefined if no list holds a level.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, figure 7.
    """

    direction: ClassVar[Direction] = "none"
    unit = "name"

    units: UnitChoice = "auto"
    words: str | None = None
    permutations: Permutations = 10_000
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on labels and attributes only."""
        read_item_levels(evidence, self.attribute)
        build_design(evidence, self.label, self.units, self.words)

    count_names = ("sum_of_units", "units")

    def of_counts(self, counts: FloatArray) -> float:
        """Return the mean over the units of several datasets from their sum and number."""
        return float(counts[0] / counts[1]) if counts[1] else math.nan

    def _measure(self, evidence: Evidence) -> Sequence[Measurement]:
        levels = read_item_levels(evidence, self.attribute)
        design = build_design(evidence, self.label, self.units, self.words)
        units = (design.queries, design.group.size)
        means = average_levels(evidence, units, levels, self.attribute, self.k)
        known = ~np.isnan(means)
        samples = bootstrap_means(
            evidence, design, np.column_stack([np.where(known, means, 0.0), known])
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            replicates = samples[..., :1] / samples[..., 1:]
        measurements = _measure_groups(design, means, replicates)
        points = np.array([[measurement.value] for measurement in measurements])
        comparisons = list_comparisons(len(measurements))
        sides = SideEstimates.from_groups(points, replicates, comparisons)
        contrasts = _test(evidence, design, means, comparisons, sides, self.permutations)
        measurements = [
            replace(measurement, contrasts=contrasts[group])
            for group, measurement in enumerate(measurements)
        ]
        measurements += self._measure_neutral(evidence, design, levels)
        bounds = float(np.nanmin(levels)), float(np.nanmax(levels))
        return [_limit(measurement, bounds) for measurement in measurements]

    def _measure_neutral(
        self, evidence: Evidence, design: Design, levels: FloatArray
    ) -> Iterator[Measurement]:
        """Yield the mean level of the design's templates without a word, if there are any."""
        ids, queries = find_neutral_templates(evidence, design)
        if ids.size:
            means = average_levels(evidence, (queries, ids.size), levels, self.attribute, self.k)
            yield _measure_units(UnitScores(TEMPLATE, ids, means), NEUTRAL)


def _limit(row: Measurement, bounds: Bounds) -> Measurement:
    """Return a value whose interval ends at the bounds."""
    low, high = limit_ends((row.ci_low, row.ci_high), bounds, row.value)
    return replace(row, ci_low=low, ci_high=high)


def _measure_groups(
    design: Design, means: FloatArray, replicates: FloatArray
) -> list[Measurement]:
    """Return the estimate of each label value; units that share words have bootstrap samples."""
    masks = [design.group == group for group in range(len(design.groups.names))]
    measurements = [
        _measure_units(UnitScores(design.unit, design.ids[mask], means[mask]), name)
        for mask, name in zip(masks, design.groups.names, strict=True)
    ]
    if design.independent or design.paired:
        return measurements
    points = np.array([[measurement.value] for measurement in measurements])
    combined, df = design.combine_samples(points, replicates)
    low, high = bootstrap_interval(points, np.moveaxis(combined, 0, -1), df)
    members = np.array(masks).T
    n, _ = design.count_units(members & ~np.isnan(means)[:, None])
    total, _ = design.count_units(members)
    return [
        replace(
            measurement,
            n=int(n[group]),
            undefined=int(total[group] - n[group]),
            units=None,
            replicates=combined[:, group, 0],
            df=float(df[group, 0]),
            ci_low=float(low[group, 0]),
            ci_high=float(high[group, 0]),
        )
        for group, measurement in enumerate(measurements)
    ]


def _measure_units(units: UnitScores, group: str) -> Measurement:
    measurement = Measurement.from_units(units, group=group)
    counts = np.array([np.nansum(units.values), measurement.n], dtype=np.float64)
    return replace(measurement, counts=counts)


def _test(
    evidence: Evidence,
    design: Design,
    means: FloatArray,
    comparisons: Sequence[Comparison],
    sides: SideEstimates,
    n_permutations: int,
) -> list[tuple[Contrast, ...]]:
    """Return the tests of each label value, over the units that have a mean."""
    known = ~np.isnan(means)
    defined = design.select(known)
    tested, values = defined, means[known][:, None]
    statistic: Statistic = np.subtract
    if design.words is not None:
        values = np.column_stack([np.where(known, means, 0.0), known])
        tested, statistic = design, compute_ratio_gap
    results = run_permutation_tests(
        evidence, tested, values, comparisons, statistic, n_permutations=n_permutations
    )
    effects = np.array([[_compute_effect(defined, means[known], pair)] for pair in comparisons])
    contrasts = build_contrasts(design, comparisons, results, sides, effects)
    return [contrasts.get((group, 0), ()) for group in range(len(design.groups.names))]


def _compute_effect(design: Design, means: FloatArray, comparison: Comparison) -> float:
    """Return Cohen's d, or d_z of the differences in the templates that hold both sides."""
    if not design.paired:
        in_b = np.isin(design.group, comparison.b)
        return cohens_d(means[design.group == comparison.a], means[in_b])
    a = _average_strata(design, means, (comparison.a,))
    gaps = a - _average_strata(design, means, comparison.b)
    gaps = gaps[~np.isnan(gaps)]
    return float(cohens_dz(gaps.mean(), gaps.std(ddof=1))) if gaps.size > 1 else math.nan


def _average_strata(design: Design, means: FloatArray, groups: tuple[int, ...]) -> FloatArray:
    members = np.isin(design.group, groups)
    strata, n = design.stratum[members], int(design.stratum.max()) + 1
    with np.errstate(invalid="ignore"):
        total = np.bincount(strata, weights=means[members], minlength=n)
        return np.asarray(total / np.bincount(strata, minlength=n))


@dataclass(frozen=True, kw_only=True)
class PricePercentage(UnitMetric):
    """The share of the recommendations at a price that comes from queries with each label.

        P(label = l | attribute = m) = x(l, m) / Σ_l' x(l', m)

    x(l, m) is the number of list positions with an item of attribute value m, over the queries
    with label value l; repeats count. With L label values 1/L is neutral, and the shares at one m
    sum to 1. With ``rescale``, x(l, m) is the mean over the units (names) of their positions at m
    per query, so that every name has the same weight and a label with more names gains nothing.
    Undefined (NaN) if no list holds an item of m. Items without the attribute or outside the
    catalogue, and queries without the label, are excluded and counted in a warning.

    The unit is the name that carries the label, or the template (see ``units``). Intervals come
    from a bootstrap over units, names within their label, with Student's t for few units. Tests
    permute labels over the names that occur in the same templates, with the same permutation in
    every template; if templates are the units, labels are permuted within each template, and the
    result holds for these words only, not for others like them. The statistic is
    (x_a - x_b) / (x_a + x_b) of the rescaled x. Up to ten label values are compared in pairs, more
    of them each with the mean of the rest. ``n`` counts the units, over all labels, whose lists
    hold m; ``undefined`` those whose lists do not.

    Args:
        label: A label of the queries, or a crossing of several: ``race&gender``.
        attribute: A categorical or ordinal column of the items; ``a|b`` counts as both.
        rescale: Give every name the same weight; False counts positions.

    Raises:
        UnknownColumn: No query carries the label, or no item the attribute.

    Range:
        0 to 1, neutral 1 / number of label values; undefined if no list holds the value.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, equation 1.
    """

    direction: ClassVar[Direction] = "none"

    units: UnitChoice = "auto"
    words: str | None = None
    rescale: bool = True
    permutations: Permutations = 10_000
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on labels and attributes only."""
        super().check(evidence)
        build_design(evidence, self.label, self.units, self.words)

    count_names = ("weight", "weight_of_all", "positions", "positions_of_all")

    def of_counts(self, counts: FloatArray) -> float:
        """Return the share from weights (rates, if rescaled) summed over datasets."""
        return float(counts[0] / counts[1]) if counts[1] else float("nan")

    def _measure(self, evidence: Evidence) -> Sequence[Measurement]:
        design = build_design(evidence, self.label, self.units, self.words)
        n_groups = len(design.groups.names)
        slots = count_attribute_values(evidence, design, self.attribute, k=self.k)
        rates = slots.counts / design.sentences[:, None]
        values = rates if self.rescale else slots.counts
        sizes = 1 if self.rescale else np.bincount(design.group, minlength=n_groups)[:, None]
        weights = sizes * compute_group_means(values, design.group, n_groups)
        samples = sizes * bootstrap_means(evidence, design, values)
        positions = np.zeros((n_groups, slots.counts.shape[1]))
        np.add.at(positions, design.group, slots.counts)
        counts = weights, _sum_labels(weights), positions, _sum_labels(positions)
        n, undefined = design.count_units(slots.counts > 0)
        with np.errstate(invalid="ignore"):
            estimates = LabelEstimates(
                values=weights / counts[1],
                replicates=samples / _sum_labels(samples),
                n=np.broadcast_to(n, weights.shape),
                undefined=np.broadcast_to(undefined, weights.shape),
                counts=np.stack(counts, axis=-1),
            )
        comparisons = list_comparisons(n_groups)
        results = run_permutation_tests(
            evidence, design, rates, comparisons, relative_gap, n_permutations=self.permutations
        )
        sides = SideEstimates.from_groups(estimates.values, estimates.replicates, comparisons)
        targets = [f"{self.attribute}={value}" for value in slots.values]
        contrasts = build_contrasts(design, comparisons, results, sides)
        return estimates.to_measurements(design, targets, contrasts)


def relative_gap(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return (a - b) / (a + b); NaN if both are 0.

    >>> relative_gap(np.array([3.0]), np.array([1.0])).tolist()
    [0.5]
    """
    with np.errstate(invalid="ignore"):
        return np.asarray((a - b) / (a + b))


def _sum_labels(weights: FloatArray) -> FloatArray:
    """Return the sum over the label values, for each of them, ``float64[..., g, m]``."""
    return np.asarray(np.ones((weights.shape[-2],) * 2) @ weights)


_WORD = r"[^\W\d_]+(?:['’][^\W\d_]+)*"
"""Letters with apostrophes between them; digits and punctuation separate words."""

_STOP_WORDS = """
    a about after all also an and any are as at be been before both but by can co could did do does
    down each for from had has have he her here his how i if in inc into is it its just llc ltd me
    more most my no nor not of off on only or other our out over own s same she so some such t than
    that the their them then there these they this those through to too under up very was we were
    what when where which who why will with you your
"""

STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words without information on an item."""


@dataclass(frozen=True, kw_only=True)
class TopWords(LabelMetric):
    """The most frequent words in the names of the items recommended under each label.

        count(w, l) = Σ over the positions of the lists of l of the occurrences of w in the name

    Words are sequences of letters, in lower case, with apostrophes inside them (``joe's``). Counts
    are not normalised, and repeated items count: compare only labels with equally many queries.
    The ``n`` most frequent words of each label value are reported, most frequent first, ties in
    alphabetical order. Items without a name or outside the catalogue are excluded and counted in a
    warning. The ``n`` of an estimate is the number of lists of the label value. Undefined (NaN) if
    none of them holds a word.

    Args:
        attribute: The column of the items that holds their names.
        n: The number of words reported for each label value.
        stop_words: Exclude English stop words such as ``the``.

    Raises:
        NothingLeft: The label has one value only, or no item has a name.

    Range:
        0 or more; undefined if no list of the label holds a word.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, figure 4.
    """

    direction: ClassVar[Direction] = "none"

    attribute: str = "title"
    n: Annotated[int, Gt(0)] = 20
    stop_words: bool = True
    k: Cutoff = None

    def _measure(self, evidence: Evidence) -> Sequence[Measurement]:
        groups = group_queries(evidence, self.label)
        warn_unlabelled(evidence, self.label, groups.missing)
        names = require_items(evidence).column(self.attribute)
        items = count_items(evidence, groups.codes, len(groups.names), k=self.k)
        warn_missing_attribute(evidence, items, names.notna().to_numpy(), self.attribute)
        words, matrix = self._count_words(names)
        counts = (items @ matrix).toarray()
        return [
            measurement
            for group, name in enumerate(groups.names)
            for measurement in self._measure_group(
                name, int(groups.counts[group]), words, counts[group]
            )
        ]

    def _count_words(self, names: pd.Series[str]) -> tuple[Ids, Matrix]:
        """Return the words, sorted, and their number in each name: CSR ``(n_items, n_words)``."""
        from scipy.sparse import coo_array

        texts = names.reset_index(drop=True).dropna().astype(str).str.lower()
        occurrences = texts.str.findall(_WORD).explode().dropna()
        if self.stop_words:
            occurrences = occurrences[~occurrences.isin(STOP_WORDS)]
        codes, words = pd.factorize(occurrences, sort=True)
        cells = (np.ones(codes.size), (occurrences.index.to_numpy(), codes))
        matrix = coo_array(cells, shape=(len(names), len(words)))
        return np.asarray(words, dtype=object), matrix.tocsr()

    def _measure_group(
        self, group: str, n: int, words: Ids, counts: FloatArray
    ) -> list[Measurement]:
        order = np.argsort(-counts, kind="stable")[: self.n]
        order = order[counts[order] > 0]
        if not order.size:
            return [Measurement(np.nan, n=0, undefined=n, group=group)]
        return [
            Measurement(
                float(counts[code]), n=n, undefined=0, group=group, target=f"word={words[code]}"
            )
            for code in order
        ]


@dataclass(frozen=True, kw_only=True)
class VarianceSplit(LabelMetric):
    """The shares of the variance between lists due to the label, the name and the wording.

        y(name, template) = label + name within label + template + rest
        share(part) = SS_part / SS_total

    y is the mean level of the attribute over the positions of a list (``$`` to ``$$$$`` is 1 to
    4). ``label`` is the variance between label values, ``name`` between the words of one label
    value, ``template`` between sentences, ``rest`` the interaction of names and sentences. The
    four shares sum to 1. Sums of squares are sequential: label, name, template. If every name
    is in every template, the order does not matter; otherwise the share of each part is what
    it adds to the least-squares fit after those before. Sums of squares describe these lists, and
    give names and templates a positive share even by chance. Undefined (NaN) if all lists have the
    same level.

    Intervals come from a bootstrap over names within their label, with Student's t
    for few names and the sentences held fixed; those of ``name``, ``template`` and ``rest`` are
    on the scale of the logit, since the variance of a share depends on it. The share of few
    labels may be nearly 0, where the logit varies too much: its interval is on the scale of the
    arcsine of the root. The share of ``name`` has none if every label has two names, of which each
    sample holds one. Labels that the words of several slots carry together have no intervals.
    ``n`` counts the names (combinations of words),
    ``undefined`` those whose lists hold no item with a level.

    Args:
        attribute: A numeric column of the items, or one of repeated signs.
        words: The column of the words that carry the label; by default it is detected.

    Raises:
        UnknownColumn: No query carries the label or a template, or the items have no such column.

    Range:
        0 to 1, the four parts sum to 1; undefined if all lists have the same level.

    Source:
        Searle, Casella and McCulloch, "Variance Components", 1992, chapters 4 and 5.
    """

    direction: ClassVar[Direction] = "none"

    words: str | None = None
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on labels and attributes only."""
        read_item_levels(evidence, self.attribute)
        self._design(evidence)

    def _measure(self, evidence: Evidence) -> Sequence[Measurement]:
        levels = read_item_levels(evidence, self.attribute)
        design, template = self._design(evidence)
        rows = np.where(design.queries >= 0, np.arange(len(evidence.queries)), -1)
        values = average_levels(evidence, (rows, rows.size), levels, self.attribute, self.k)
        crossed = _cross(design, template, values)
        defined = np.isin(np.arange(design.group.size), design.queries[~np.isnan(values)])
        shares = _share_squares(crossed)[0]
        measurements = [
            Measurement(
                value=float(share),
                n=0 if np.isnan(share) else int(defined.sum()),
                undefined=defined.size if np.isnan(share) else int((~defined).sum()),
                target=part,
            )
            for part, share in zip(PARTS, shares, strict=True)
        ]
        if design.df == 0:
            return measurements
        (weights,) = design.sample_weights(evidence.n_bootstrap, evidence.rng())
        replicates = _share_squares(crossed, weights[:, defined])
        return [
            _add_interval(measurement, replicates[:, column], float(design.df))
            for column, measurement in enumerate(measurements)
        ]

    def _design(self, evidence: Evidence) -> tuple[Design, AnyArray]:
        """Return the names, and the template of each query."""
        design = build_design(evidence, self.label, "name", self.words)
        if TEMPLATE not in evidence.queries.labels.names:
            message, remedy = "the queries have no column 'template'", "make them from templates"
            raise UnknownColumn(message, remedy=remedy)
        template = encode_templates(evidence)
        if design.df == 0 and design.independent:
            message = "has one word for each value, so that name and label cannot be separated"
            warn(f"{evidence.metric}: {self.label} {message}")
        return design, template


def _share_squares(crossed: CrossedDesign, weights: FloatArray | None = None) -> FloatArray:
    """Return the shares of the sums of squares, ``float64[b, 4]``; NaN with undefined weights."""
    if weights is not None and np.isnan(weights).any():
        return np.full((len(weights), len(PARTS)), np.nan)
    parts = compute_sums_of_squares(crossed, weights)
    with np.errstate(invalid="ignore"):
        return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def _cross(design: Design, template: AnyArray, values: FloatArray) -> CrossedDesign:
    labelled = design.queries >= 0
    names, templates = design.queries[labelled], template[labelled]
    return CrossedDesign.from_values(values[labelled], names, templates, design.group)


def _add_interval(measurement: Measurement, replicates: FloatArray, df: float) -> Measurement:
    """Return the share of a part with its interval."""
    make_interval = arcsine_t_interval if measurement.target == PARTS[0] else logit_t_interval
    low, high = make_interval(measurement.value, replicates, df)
    if not low < high:
        low = high = math.nan
    return replace(
        measurement, ci_low=low, ci_high=high, replicates=replicates, df=df, own_interval=True
    )
