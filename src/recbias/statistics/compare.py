"""Every pair of systems on every figure, corrected within a named family: ``significance.csv``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.columns import PAIR, SIGNIFICANCE
from recbias.core.protocols import PairedTest
from recbias.core.seeds import generator
from recbias.statistics import bootstrap
from recbias.statistics.corrections import adjust, n_tests

WHICH = ("dataset", "seed", "fold", "metric", "k", "group", "target")
"""The keys of a figure."""


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
    """

    systems: tuple[str, ...]
    values: FloatArray | None
    points: FloatArray
    replicates: FloatArray | None
    keys: Mapping[str, object]
    n: int | None = None

    @property
    def comparable(self) -> bool:
        """Whether there are two systems and something to compare them by."""
        return len(self.systems) > 1 and not (self.values is None and self.replicates is None)


def compare(figures: Sequence[Figure], test: PairedTest, *, name: str, seed: int) -> pd.DataFrame:
    """Compare every two systems on every figure, and correct the p-values within their families.

    A figure with units is tested by ``test``; one of the whole set by the paired bootstrap, at the
    same level and with the same correction. One with neither, or of one system, has no row.

    Args:
        figures: The figures, in the order of the rows.
        test: The test, with its alpha, correction and family. The family ``metric`` is all pairs
            of systems on one figure; ``report`` all pairs on all of ``figures``; a number stands
            for itself. A comparison without a p-value (NaN) does not count in a family.
        name: What the test is called in the rows.
        seed: The experiment's seed; each figure has chance of its own, whatever else is compared.

    Returns:
        The columns of ``significance.csv``, one row a pair: (0, 1), (0, 2), ..., (1, 2), ...
        ``n``, ``k`` and ``family_size`` are ``Int64``, missing where they do not apply.
    """
    compared = [each for each in figures if each.comparable]
    if not compared:
        return pd.DataFrame(columns=list(SIGNIFICANCE))
    tested = [_tested(each, test, name=name, seed=seed) for each in compared]
    found = {key: np.concatenate([each[key] for each in tested]) for key in PAIR}
    table = pd.DataFrame({**_named(compared, tested, name), **found, **_corrected(tested, test)})
    for key in ("k", "n"):
        table[key] = table[key].astype("Int64")
    return table[list(SIGNIFICANCE)]


def _tested(figure: Figure, test: PairedTest, *, name: str, seed: int) -> Mapping[str, AnyArray]:
    """Return the columns of one figure."""
    if figure.values is not None:
        rng = generator(seed, "test", name, *(figure.keys[key] for key in WHICH))
        return test.pairs(np.asarray(figure.values, dtype=np.float64), rng)
    replicates = np.asarray(figure.replicates, dtype=np.float64)
    found = bootstrap.replicate_pairs(figure.points, replicates, test.alpha)
    return found if figure.n is None else {**found, "n": np.full(found["p"].size, figure.n)}


def _named(
    figures: Sequence[Figure], tested: Sequence[Mapping[str, AnyArray]], name: str
) -> dict[str, object]:
    """Return what is compared, who with whom, and by what."""
    sides: dict[str, list[object]] = {key: [] for key in (*WHICH, "a", "b", "test")}
    for figure, found in zip(figures, tested, strict=True):
        n_pairs = found["p"].size
        for key in WHICH:
            sides[key] += [figure.keys[key]] * n_pairs
        for side in ("a", "b"):
            sides[side] += [figure.systems[place] for place in found[side]]
        used = name if figure.values is not None else bootstrap.NAME
        sides["test"] += [used] * n_pairs
    return {**sides, "model": "", "between": "models"}


def _corrected(tested: Sequence[Mapping[str, AnyArray]], test: PairedTest) -> dict[str, object]:
    """Return the adjusted p-values, and how they were adjusted."""
    families = [each["p"] for each in tested]
    if test.family == "report":
        families = [np.concatenate(families)]
    size = test.family if isinstance(test.family, int) else None
    adjusted = np.concatenate([adjust(each, test.correction, size) for each in families])
    sizes = [n_tests(each) if size is None else size for each in families]
    return {
        "p_adjusted": adjusted,
        "correction": test.correction,
        "family": str(test.family),
        "family_size": np.repeat(sizes, [each.size for each in families]),
        "alpha": test.alpha,
        "significant": adjusted <= test.alpha,
    }
