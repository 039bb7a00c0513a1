"""Every pair of systems on every figure, corrected within a named family: ``significance.csv``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.columns import PAIR, SIGNIFICANCE
from recbias.core.measurements.scores import Contrast
from recbias.core.protocols import PairedTest
from recbias.core.seeds import make_generator
from recbias.statistics.bootstrap import query_bootstrap as bootstrap
from recbias.statistics.corrections import adjust, n_tests

Correction: TypeAlias = Literal["none", "bonferroni", "holm", "bh"]
"""How the p-values of a family are corrected."""

WHICH = ("dataset", "seed", "fold", "metric", "k", "group", "target")
"""The keys of a figure."""

FAMILY = ["dataset", "model", "seed", "fold", "metric", "k", "test"]
"""What the comparisons of the family ``metric`` share: every group and target is in it."""


@dataclass(frozen=True, eq=False)
class Figure:
    """One figure of all systems, measured on the same units.

    Args:
        systems: Their names.
        values: The value of each unit, ``float64[s, u]``; None for a figure of the whole set.
        points: The figure itself, ``float64[s]``.
        replicates: The figure on each bootstrap sample of the queries, ``float64[s, b]``, the same
            samples for all; for figures of the whole set.
        keys: Dataset, seed, fold, metric, k, group and target.
        n: How many queries a figure of the whole set is of.
        df: Degrees of freedom of the spread of the samples; NaN where it is normal.
    """

    systems: tuple[str, ...]
    values: FloatArray | None
    points: FloatArray
    replicates: FloatArray | None
    keys: Mapping[str, object]
    n: int | None = None
    df: float = math.nan

    @property
    def comparable(self) -> bool:
        """Whether there are two systems and something to compare them by."""
        return len(self.systems) > 1 and not (self.values is None and self.replicates is None)


@dataclass(frozen=True, eq=False)
class Inside:
    """The tests that one metric made inside one model: one family.

    Args:
        keys: Dataset, model, seed, fold, metric and k.
        contrasts: The tests, each with the group and target of its row.
    """

    keys: Mapping[str, object]
    contrasts: Sequence[tuple[str, str, Contrast]]


class Level(Protocol):
    """How p-values are judged: what a test has, and what a spec without tests takes."""

    @property
    def alpha(self) -> float:
        """The level."""
        ...

    @property
    def correction(self) -> Correction:
        """How the p-values of a family are corrected."""
        ...

    @property
    def family(self) -> Literal["metric", "report"] | int:
        """Which comparisons are corrected together."""
        ...


@dataclass(frozen=True)
class UsualLevel:
    """How the tests inside models are judged where a spec names no test."""

    alpha: float = 0.05
    correction: Correction = "bonferroni"
    family: Literal["metric", "report"] | int = "metric"


def compare(
    figures: Sequence[Figure],
    test: PairedTest,
    *,
    name: str,
    seed: int,
    inside: Sequence[Inside] = (),
) -> pd.DataFrame:
    """Compare every two systems on every figure, and correct the p-values within their families.

    A figure with units is tested by ``test``; one with samples by the paired bootstrap, at the
    same level and with the same correction: it is of a whole set, or its units are not all that
    is uncertain. One with neither, or of one system, has no row.

    Args:
        figures: The figures, in the order of the rows.
        test: The test, with its alpha, correction and family. The family ``metric`` is all pairs
            of systems on all figures of one metric, whatever their group and target; ``report``
            all pairs on all of ``figures``; a number stands for itself. A comparison without a
            p-value (NaN) does not count in a family.
        inside: The tests that metrics made inside models, corrected alike: the family ``metric``
            is those of one metric and model by one kind of test.
        name: What the test is called in the rows.
        seed: The experiment's seed; each figure has chance of its own, whatever else is compared.

    Returns:
        The columns of ``significance.csv``, one row a pair: (0, 1), (0, 2), ..., (1, 2), ...
        ``n``, ``k`` and ``family_size`` are ``Int64``, missing where they do not apply.
    """
    compared = [each for each in figures if each.comparable]
    tested = [_tested(each, test, name=name, seed=seed) for each in compared]
    return _table(_named(compared, tested, name), tested, inside, test)


def judge(inside: Sequence[Inside], level: Level) -> pd.DataFrame:
    """Correct the tests that metrics made inside models, where no test of models is asked for."""
    return _table(_named([], [], ""), [], inside, level)


def _table(
    named: dict[str, list[object]],
    tested: Sequence[Mapping[str, AnyArray]],
    inside: Sequence[Inside],
    level: Level,
) -> pd.DataFrame:
    held = [each for each in inside if each.contrasts]
    blocks = [*tested, *(_columns(each) for each in held)]
    if not blocks:
        return pd.DataFrame(columns=list(SIGNIFICANCE))
    for each in held:
        _name_contrasts(named, each)
    found = {key: np.concatenate([each[key] for each in blocks]) for key in PAIR}
    table = pd.DataFrame({**named, **found})
    for key, column in _corrected(table, level).items():
        table[key] = column
    for key in ("k", "n"):
        table[key] = table[key].astype("Int64")
    return table[list(SIGNIFICANCE)]


def _columns(inside: Inside) -> Mapping[str, AnyArray]:
    rows = [each for _, _, each in inside.contrasts]
    return {key: np.array([vars(each)[key] for each in rows], dtype=np.float64) for key in PAIR}


def _name_contrasts(named: dict[str, list[object]], inside: Inside) -> None:
    for group, target, each in inside.contrasts:
        where = {**inside.keys, "group": group, "target": target}
        what = {"a": each.a, "b": each.b, "test": each.test, "between": each.between}
        for key, column in named.items():
            column.append({**where, **what}[key])


def _tested(figure: Figure, test: PairedTest, *, name: str, seed: int) -> Mapping[str, AnyArray]:
    """Return the columns of one figure."""
    if figure.values is not None and figure.replicates is None:
        rng = make_generator(seed, "test", name, *(figure.keys[key] for key in WHICH))
        return test.pairs(np.asarray(figure.values, dtype=np.float64), rng)
    replicates = np.asarray(figure.replicates, dtype=np.float64)
    found = bootstrap.replicate_pairs(figure.points, replicates, test.alpha, df=figure.df)
    return found if figure.n is None else {**found, "n": np.full(found["p"].size, figure.n)}


def _named(
    figures: Sequence[Figure], tested: Sequence[Mapping[str, AnyArray]], name: str
) -> dict[str, list[object]]:
    """Return what is compared, who with whom, and by what."""
    sides: dict[str, list[object]] = {key: [] for key in (*WHICH, "a", "b", "test")}
    for figure, found in zip(figures, tested, strict=True):
        n_pairs = found["p"].size
        for key in WHICH:
            sides[key] += [figure.keys[key]] * n_pairs
        for side in ("a", "b"):
            sides[side] += [figure.systems[place] for place in found[side]]
        used = name if figure.replicates is None else bootstrap.NAME
        sides["test"] += [used] * n_pairs
    n_rows = len(sides["a"])
    return {**sides, "model": [""] * n_rows, "between": ["models"] * n_rows}


def _corrected(table: pd.DataFrame, level: Level) -> dict[str, Any]:
    """Return the adjusted p-values, and how they were adjusted."""
    p = table["p"].to_numpy(dtype=np.float64)
    families: AnyArray = np.zeros(p.size, dtype=np.int64)
    if level.family == "metric":
        families = table.groupby(FAMILY, sort=False, dropna=False).ngroup().to_numpy()
    given = level.family if isinstance(level.family, int) else None
    adjusted, sizes = np.empty(p.size), np.empty(p.size)
    for family in range(int(families.max(initial=-1)) + 1):
        rows = np.flatnonzero(families == family)
        adjusted[rows] = adjust(p[rows], level.correction, given)
        sizes[rows] = n_tests(p[rows]) if given is None else given
    return {
        "p_adjusted": adjusted,
        "correction": level.correction,
        "family": str(level.family),
        "family_size": sizes.astype(np.int64),
        "alpha": level.alpha,
        "significant": adjusted <= level.alpha,
    }
