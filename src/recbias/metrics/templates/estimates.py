"""Estimates of label values, which of them are compared, and their permutation tests."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, TypeAlias

import numpy as np

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, FloatArray
from recbias.core.docstrings import InheritsSections
from recbias.core.evidence import Evidence
from recbias.core.measures import Contrast, Measurement
from recbias.metrics.templates.design import Design, check_attribute, group_queries, lacks_label
from recbias.statistics.bootstrap import bootstrap_t_interval, compute_group_means
from recbias.statistics.permutation import (
    LabelExchange,
    SlotComparison,
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


def list_comparisons(n_groups: int, classes: AnyArray | None = None) -> list[Comparison]:
    """Return the comparisons within each class of label values.

    Up to ten label values of a class are compared in pairs, more of them each with the rest.

    >>> [(comparison.a, comparison.b) for comparison in list_comparisons(3)]
    [(0, (1,)), (0, (2,)), (1, (2,))]
    """
    classes = np.zeros(n_groups, dtype=np.intp) if classes is None else classes
    comparisons: list[Comparison] = []
    for code in np.unique(classes):
        members = np.flatnonzero(classes == code).tolist()
        if len(members) <= _MAX_PAIRED:
            comparisons += [Comparison(a, (b,)) for a, b in combinations(members, 2)]
        else:
            comparisons += list_rest_comparisons(members)
    return comparisons


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
        low, high = bootstrap_t_interval(self.values, samples, df)
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


@dataclass(frozen=True, eq=False)
class PermutationResults:
    """The tests of several comparisons at several targets.

    Args:
        comparisons: The comparisons.
        statistic: ``float64[s, m]``.
        p: Two-sided, ``float64[s, m]``; NaN if the test cannot be computed.
        n: The number of units of both sides of each, of templates if they are the units, or of
            words if those of several slots carry the label, ``int[s]``.
    """

    comparisons: tuple[Comparison, ...]
    statistic: FloatArray
    p: FloatArray
    n: AnyArray


@dataclass(frozen=True, eq=False)
class _Layout:
    """The units of both sides of a comparison, by stratum, those of the first side first."""

    row: int
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
    if design.words is not None:
        return _permute_slots(evidence, design, values, comparisons, statistic, n_permutations)
    layouts = [
        _lay_out(design, values, comparison, row, statistic)
        for row, comparison in enumerate(comparisons)
    ]
    by_strata: dict[bytes, list[_Layout]] = defaultdict(list)
    for layout in layouts:
        by_strata[layout.sizes.tobytes() + layout.n_first.tobytes()].append(layout)
    observed = np.stack([layout.observed for layout in layouts])
    p = np.full(observed.shape, np.nan)
    for group in by_strata.values():
        exchange = LabelExchange(group[0].sizes, group[0].n_first)
        for batch in _batch_layouts(group):
            rows = np.array([[layout.row for layout in same_units] for same_units in batch])
            units = np.stack([same_units[0].units for same_units in batch])
            p[rows] = permute_labels(
                values[units],
                observed[rows],
                exchange,
                statistic,
                n_permutations=n_permutations,
                rng=evidence.rng(),
            )
        if exchange.n_labellings == 1:
            _warn_no_p_value(evidence, design, len(group))
    n = [layout.sizes.size if design.paired else layout.units.size for layout in layouts]
    return PermutationResults(tuple(comparisons), observed, p, np.array(n))


def build_contrasts(
    design: Design,
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
    low, high = bootstrap_t_interval(difference, np.moveaxis(samples, 0, -1), df)
    lacks_spread = (low >= high) & (difference != 0)
    low, high = (np.where(lacks_spread, np.nan, end) for end in (low, high))
    sizes = np.full(difference.shape, np.nan) if effects is None else effects
    names = design.groups.names
    contrasts: dict[tuple[int, int], tuple[Contrast, ...]] = defaultdict(tuple)
    for row, column in zip(*np.nonzero(~np.isnan(difference)), strict=True):
        comparison, cell = results.comparisons[row], (row, column)
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


def _permute_slots(
    evidence: Evidence,
    design: Design,
    values: FloatArray,
    comparisons: Sequence[Comparison],
    statistic: Statistic,
    n_permutations: int,
) -> PermutationResults:
    """Return the tests of a label that the words of several slots carry together."""
    labels = np.arange(len(design.groups.names))
    a = np.array([labels == comparison.a for comparison in comparisons])
    b = np.array([np.isin(labels, comparison.b) for comparison in comparisons])
    observed, p = permute_slots(
        values,
        design.crossing,
        SlotComparison(a, b, statistic),
        n_permutations=n_permutations,
        rng=evidence.rng(),
    )
    if np.isnan(p[~np.isnan(observed)]).any():
        _warn_no_p_value(evidence, design, len(comparisons))
    compared = (a | b)[:, design.group].T
    return PermutationResults(tuple(comparisons), observed, p, design.count_units(compared)[0])


def _warn_no_p_value(evidence: Evidence, design: Design, n: int) -> None:
    message = f"{n:,} comparisons of {design.groups.by} have no p-value"
    warn(f"{evidence.metric}: {message}, since no labels can be permuted")


def _batch_layouts(layouts: list[_Layout]) -> list[list[list[_Layout]]]:
    """Group layouts with the same strata by their units, and those groups by their length."""
    by_units: dict[bytes, list[_Layout]] = defaultdict(list)
    for layout in layouts:
        by_units[np.sort(layout.units).tobytes()].append(layout)
    by_length: dict[int, list[list[_Layout]]] = defaultdict(list)
    for same_units in by_units.values():
        by_length[len(same_units)].append(same_units)
    return list(by_length.values())


def _lay_out(
    design: Design, values: FloatArray, comparison: Comparison, row: int, statistic: Statistic
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
    return _Layout(row, units, (n_a + n_b)[mixed], n_a[mixed], observed)


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
