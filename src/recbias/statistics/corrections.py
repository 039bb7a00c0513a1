"""Adjusted p-values for a family of tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.errors import Contradiction
from recbias.core.inherited_sections import InheritsSections

Correction: TypeAlias = Literal["none", "bonferroni", "holm", "bh"]
"""None; Bonferroni and Holm control the family-wise error rate, Benjamini-Hochberg the FDR."""

Alpha: TypeAlias = Annotated[float, Ge(1e-12), Lt(1)]
"""A significance level; float64 quantiles of smaller levels are those of 0."""

Family: TypeAlias = Literal["metric", "report"] | Annotated[int, Gt(0), Le(1_000_000_000)]
"""The comparisons corrected together: those of one metric, of the run, or a fixed number."""


class PairedTest(Protocol):
    """A two-sided test that two systems have the same mean, over paired units."""

    @property
    def alpha(self) -> float:
        """The significance level: a corrected p-value of at most this is significant."""

    @property
    def correction(self) -> Correction:
        """How the p-values of a family are corrected."""

    @property
    def family(self) -> Literal["metric", "report"] | int:
        """Which comparisons are corrected together."""

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Return the columns ``PAIR_COLUMNS`` for all pairs of rows of ``float64[s, u]``.

        A row is a system and a column a unit; NaN is undefined. ``rng`` is of this comparison. A
        column ``test`` may name the test of each pair, where it is another than this; blank where
        it is not.
        """


@dataclass(frozen=True, kw_only=True)
class CorrectedTest(InheritsSections):
    """The settings that all tests share.

    Args:
        alpha: A comparison is significant if its corrected p is at most this level.
        correction: The correction of the p-values of a family.
        family: The comparisons corrected together: all pairs of models on one metric (``metric``),
            every comparison in the run (``report``), or an integer by which p is multiplied.

    Raises:
        Contradiction: An integer as the family of ``holm`` or ``bh``.
    """

    undefined_where: ClassVar[str] = (
        "fewer than two units, or no standard error, as all units or bootstrap samples have the "
        "same difference"
    )
    """Where a comparison has no p-value, for the warning that counts them."""

    alpha: Alpha = 0.05
    correction: Correction = "bonferroni"
    family: Family = "metric"

    def __post_init__(self) -> None:
        """Refuse a family that the correction does not allow."""
        check_family(self.correction, self.family)


def check_family(correction: Correction, family: Family) -> None:
    """Raise Contradiction for an integer and a correction that ranks the p-values of a family."""
    if isinstance(family, int) and correction in {"holm", "bh"}:
        message = f"correction {correction} ranks the p-values of its family: it takes no number"
        remedy = "set family: metric or report, or correction: bonferroni"
        raise Contradiction(message, remedy=remedy)


def adjust(p: FloatArray, method: Correction, size: int | None = None) -> FloatArray:
    """Return adjusted p-values, to be compared with alpha.

    For a family of m, with p₁ ≤ p₂ ≤ ... ≤ p_m::

        none         p
        bonferroni   min(1, m p)
        holm         max over j ≤ i of min(1, (m - j + 1) p_j)
        bh           min over j ≥ i of min(1, m p_j / j)

    A p-value of NaN (a comparison that could not be tested) stays NaN and does not count. ``size``
    is the m of Bonferroni, if it is not their number; Contradiction for Holm and
    Benjamini-Hochberg.

    >>> adjust(np.array([0.01, 0.04, 0.03]), "bonferroni").round(3).tolist()
    [0.03, 0.12, 0.09]
    >>> adjust(np.array([0.01, 0.04, 0.03]), "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    >>> adjust(np.array([0.01, 0.04, 0.03]), "bh").round(3).tolist()
    [0.03, 0.04, 0.04]

    Source:
        Dunn, "Multiple comparisons among means", JASA 1961; Holm, "A simple sequentially rejective
        multiple test procedure", Scandinavian Journal of Statistics 1979; Benjamini and Hochberg,
        "Controlling the false discovery rate", JRSS B 1995.
    """
    if size is not None:
        check_family(method, size)
    if method == "none":
        return p.copy()
    if method == "bonferroni":
        return np.minimum(p * (count_tests(p) if size is None else size), 1.0)
    m = count_tests(p)
    order = np.argsort(p, kind="stable")[:m]  # NaN sorts last
    ascending, adjusted = p[order], np.full(p.shape, np.nan)
    if method == "holm":
        stepped = np.maximum.accumulate(np.arange(m, 0, -1) * ascending)
    else:
        scaled = ascending * m / np.arange(1, m + 1)
        stepped = np.minimum.accumulate(scaled[::-1])[::-1]
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def adjust_distinct(
    p: FloatArray, tests: AnyArray, method: Correction, size: int | None = None
) -> FloatArray:
    """Return adjusted p-values of a family in which a test may stand several times.

    ``tests`` is the number of each test, ``int[c]``. A test counts once, with its first p-value,
    and all its places have the same adjusted p-value; see ``adjust``.

    >>> p, tests = np.array([0.01, 0.03, 0.01]), np.array([0, 1, 0])
    >>> adjust_distinct(p, tests, "bonferroni").tolist()
    [0.02, 0.06, 0.02]
    """
    _, firsts, places = np.unique(tests, return_index=True, return_inverse=True)
    return adjust(p[firsts], method, size)[places]


def count_tests(p: FloatArray, tests: AnyArray | None = None) -> int:
    """Return the number of defined p-values, the size of their family; of each test one.

    >>> count_tests(np.array([0.2, np.nan]))
    1
    >>> count_tests(np.array([0.2, 0.2, 0.3]), np.array([0, 0, 1]))
    2
    """
    defined = ~np.isnan(p)
    return int(np.count_nonzero(defined) if tests is None else np.unique(tests[defined]).size)
