"""Groups of queries over several seeds or folds: the mean of each unit, and their tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from recbias.core.measurements.scores import Contrast, Measurement, UnitScores
from recbias.statistics.group_gaps import MAX_PAIRS, compare_all_groups, list_group_pairs
from recbias.statistics.tests.overlapping import overlap_contrasts
from recbias.statistics.tests.unpaired import compute_moments, welch_contrasts


def pool_groups(folds: Sequence[Measurement]) -> list[Measurement]:
    """Return each group with one value for each unit: the mean of its defined values.

        x_u = (1 / |F_u|) Σ_f x_uf,    F_u: the seeds and folds in which u is in the group and
        its value is defined

    ``n`` counts units, not values; the interval is that of the mean of x_u.

    Args:
        folds: The groups of all seeds and folds, each with its units, of one target.

    >>> ids = [np.array(names, dtype=object) for names in (["a", "b"], ["b", "c"])]
    >>> folds = [
    ...     Measurement.from_units(UnitScores("user", names, np.array(values)), group="g")
    ...     for names, values in zip(ids, ([1.0, 2.0], [4.0, np.nan]), strict=True)
    ... ]
    >>> (group,) = pool_groups(folds)  # a: 1, b: (2 + 4) / 2 = 3, c is undefined
    >>> group.group, group.value, group.n, group.undefined
    ('g', 2.0, 2, 1)
    """
    units_by_group: dict[tuple[str, str], list[UnitScores]] = defaultdict(list)
    for fold in folds:
        units_by_group[fold.group, fold.target].append(_get_units(fold))
    return [
        Measurement.from_units(_average_units(units), group=group, target=target)
        for (group, target), units in units_by_group.items()
    ]


def compare_pooled_groups(
    groups: Sequence[Measurement],
    gap: Literal["groups", "difference"],
    *,
    min_group: int = 0,
    reference: str = "",
) -> list[Contrast]:
    """Return the tests of pooled groups that ``gap`` has within one seed.

    ``groups``: pairs by Welch's t-test, as in ``summarize_groups``; ``difference``: of two groups
    this test, of more Welch's analysis of variance. A unit that is in several groups, or whose
    group depends on the seed, is in each of them, and ``overlap_contrasts`` makes the tests.
    Groups of fewer than ``min_group`` defined units are not compared.
    """
    if gap == "difference":
        groups, reference = [group for group in groups if group.n >= max(min_group, 1)], ""
    if not groups:
        return []
    names, scores = tuple(group.group for group in groups), [*map(_get_units, groups)]
    values = np.concatenate([units.values for units in scores])
    codes = np.repeat(np.arange(len(groups)), [units.values.size for units in scores])
    ids, unit_codes = np.unique(
        np.concatenate([units.ids for units in scores]), return_inverse=True
    )
    overlap, moments = ids.size < unit_codes.size, compute_moments(values, codes, len(groups))
    if gap == "difference" and len(groups) > 2:
        return [] if overlap else compare_all_groups(names, moments)
    at = names.index(reference) if reference in names else -1
    pairs = list_group_pairs(moments.n, min_group, at)
    if not 0 < pairs[0].size <= MAX_PAIRS:
        return []
    if not overlap:
        return welch_contrasts(names, moments, between="groups", pairs=pairs)
    table = np.full((len(groups), ids.size), np.nan)
    table[codes, unit_codes] = values
    members = ~np.isnan(table)
    return overlap_contrasts(names, table, members, between="groups", pairs=pairs)


def _average_units(folds: Sequence[UnitScores]) -> UnitScores:
    """Return the mean of the defined values of each unit, NaN if it has none."""
    values = np.concatenate([units.values for units in folds])
    ids, codes = np.unique(np.concatenate([units.ids for units in folds]), return_inverse=True)
    means = compute_moments(values, codes, ids.size).mean
    share = all(units.share for units in folds) and ids.size == codes.size
    return replace(folds[0], ids=ids, values=means, share=share)


def _get_units(group: Measurement) -> UnitScores:
    if group.units is None:
        message = "a group without values of units cannot be pooled"
        raise ValueError(message)
    return group.units
