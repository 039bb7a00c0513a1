"""Designs of names crossed with templates: how many names, and how many templates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, FloatArray
from recbias.runner.power.power_designs import UnitDesign
from recbias.statistics.power import ErrorOfMean, measure_crossed_error, measure_group_error
from recbias.statistics.variance_components import PARTS, CrossedDesign, estimate_components

NEUTRAL = "neutral"
"""The word of a prompt without a word in its id, which is no name."""


def cross_prompts(ids: Iterable[object], differences: FloatArray) -> list[UnitDesign]:
    """Return the designs of names and of templates, if every name is in every template once.

    Both are samples: the variance of the mean difference is that of ``measure_crossed_error``,
    with the components of the differences. The id of a prompt is ``template:name``.
    """
    parts = pd.Series([str(name) for name in ids], dtype="str").str.partition(":")
    named = ((parts[2] != "") & (parts[2] != NEUTRAL)).to_numpy()
    templates, template_names = pd.factorize(parts[0][named])
    names, words = pd.factorize(parts[2][named])
    if min(words.size, template_names.size) < 2:
        return []
    labels = np.zeros(words.size, dtype=np.intp)
    crossed = CrossedDesign.from_values(differences[named], names, templates, labels)
    if crossed.n.shape != (words.size, template_names.size) or not (crossed.n == 1).all():
        return []
    components = estimate_components(crossed)[0, 1:]
    n_names, n_templates = crossed.n.shape

    def measure_names(n: FloatArray) -> ErrorOfMean:
        return measure_crossed_error(components, n, n_templates)

    def measure_templates(n: FloatArray) -> ErrorOfMean:
        return measure_crossed_error(components, n_names, n)

    return [
        UnitDesign("name", n_names, measure_names, given=f"{n_templates:,} templates"),
        UnitDesign("template", n_templates, measure_templates, given=f"{n_names:,} names"),
    ]


def split_label_gap(
    groups: Sequence[Mapping[str, Any]],
    sides: tuple[str, str],
    shares: Mapping[str, float],
    *,
    form: str,
    n_templates: int,
) -> list[UnitDesign]:
    """Return the designs of names and of templates for the gap between two label values.

        se² = (σ²_name + σ²_rest / K) (1 / J_a + 1 / J_b),    J_a + J_b - 2 degrees of freedom

    The names are a sample and the K templates are the same for both label values, so that the
    variance between templates cancels. σ²_name + σ²_rest / K is the variance of the names' means
    within their label value; the shares of the variance split it.

    Args:
        groups: The rows of ``mean_attribute`` for all label values, with ``n`` and ``std``.
        sides: The two label values.
        shares: The values of ``variance_split`` by part.
        form: The form of ``variance_split``.
        n_templates: The number of templates, with every name in each.
    """
    sizes = np.array([float(group["n"]) for group in groups])
    std = np.nan_to_num(np.array([float(group["std"]) for group in groups]))
    within, lost = float(((sizes - 1.0) * std**2).sum()), float(sizes.size)
    if sizes.sum() <= lost or n_templates < 2 or not within > 0 or not shares["name"] > 0:
        return []
    variance = within / (sizes.sum() - lost)
    if form == "components":
        rest = shares["rest"] * variance / (shares["name"] + shares["rest"] / n_templates)
    else:
        total = n_templates * within / shares["name"]
        rest = shares["rest"] * total / ((sizes.sum() - 1.0) * (n_templates - 1.0))
    name = max(variance - rest / n_templates, 0.0)
    return _build_gap_designs(groups, sides, (name, rest), n_templates)


def _build_gap_designs(
    groups: Sequence[Mapping[str, Any]],
    sides: tuple[str, str],
    components: tuple[float, float],
    n_templates: int,
) -> list[UnitDesign]:
    name, rest = components
    by_group = {str(group["group"]): float(group["n"]) for group in groups}
    n_a, n_b = (by_group[side] for side in sides)
    n = n_a + n_b
    of_names = np.full(2, name + rest / n_templates)
    names_by_size = measure_group_error(of_names, np.array([n_a, n_b]) / n)

    def measure_templates(k: FloatArray) -> ErrorOfMean:
        error = np.sqrt((name + rest / k) * (1.0 / n_a + 1.0 / n_b))
        return np.asarray(error), np.full(np.shape(k), n - 2.0)

    smallest, sizes = float(np.ceil(2.0 * n / min(n_a, n_b))), (n_a / n, n_b / n)
    given = f"{n_templates:,} templates"
    return [
        UnitDesign("name", int(n), names_by_size, smallest, sizes, given),
        UnitDesign("template", n_templates, measure_templates, 1.0, given=f"{n:,.0f} names"),
    ]


def count_templates(query_ids: Iterable[object], names: Iterable[object]) -> int:
    """Return the number of templates if every name is in each of them once, else 0.

    >>> count_templates(["t1:Ann", "t1:Bob", "t2:Ann", "t2:Bob", "t1:neutral"], ["Ann", "Bob"])
    2
    """
    parts = pd.Series([str(name) for name in query_ids], dtype="str").str.partition(":")
    words: AnyArray = np.unique([str(name) for name in names])
    used = parts[parts[2].isin(words)]
    n_templates = int(used[0].nunique())
    is_crossed = len(used) == words.size * n_templates == len(used.drop_duplicates())
    return n_templates if is_crossed else 0


def select_shares(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, float]:
    """Return the shares of ``variance_split`` by part, empty if one is undefined."""
    shares = {str(row["target"]): float(row["value"]) for row in rows}
    is_complete = set(PARTS) <= {name for name, share in shares.items() if not math.isnan(share)}
    return shares if is_complete else {}
