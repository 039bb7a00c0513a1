"""Expected exposure: what items or groups of items get, against what an ideal ranking gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.exposure.browsing import (
    BrowsingModel,
    mark_candidates,
    select_histories,
    select_relevant,
    sum_rows,
    weigh_ranks,
)
from recbias.metrics.exposure.exposure_metric import ExposureMetric
from recbias.metrics.exposure.item_groups import (
    ItemGroups,
    Multiple,
    Ungrouped,
    read_item_groups,
    warn_ungrouped,
)
from recbias.metrics.exposure.list_samples import ListSamples, read_list_samples

BLOCK_ROWS = 2**16
"""The number of queries whose groups are summed at once."""


@dataclass(frozen=True, eq=False)
class TargetExposure:
    """The exposure of the items under ideal rankings, and what the lists give them.

    Args:
        exposure: The exposure of each item, CSR ``(q, n)``; the mean over its lists.
        relevant: The relevant items, and ``histories`` the items that the query cannot be
            recommended, CSR ``(q, n)`` of ones.
        candidates: Which items may be recommended to anybody, 0 or 1, ``float64[n]``.
        best: The exposure of each relevant item in an ideal ranking, ``float64[q]``; ``rest`` that
            of each other candidate.
    """

    exposure: Matrix
    relevant: Matrix
    histories: Matrix
    candidates: FloatArray
    best: FloatArray
    rest: FloatArray

    def __len__(self) -> int:
        return int(self.best.size)

    def sum_members(self, groups: ItemGroups) -> TargetExposure:
        """Return the same for groups of items: the sums over their members."""
        return replace(
            self,
            exposure=groups.sum_members(self.exposure),
            relevant=groups.sum_members(self.relevant),
            histories=groups.sum_members(self.histories),
            candidates=groups.sizes,
        )

    def take(self, rows: AnyArray) -> TargetExposure:
        """Return some of the queries, by position."""
        return TargetExposure(
            self.exposure[rows],
            self.relevant[rows],
            self.histories[rows],
            self.candidates,
            self.best[rows],
            self.rest[rows],
        )

    def disparity(self) -> FloatArray:
        """Return the sum of the squared exposures of each query, ``float64[q]``."""
        return sum_rows(self.exposure.power(2))

    def relevance(self) -> FloatArray:
        """Return the product of exposure and target exposure of each query, ``float64[q]``."""
        to_relevant = sum_rows(self.exposure.multiply(self.relevant))
        to_history = sum_rows(self.exposure.multiply(self.histories))
        to_others = self.exposure @ self.candidates - to_history - to_relevant
        return np.asarray(self.best * to_relevant + self.rest * to_others)

    def target_square(self) -> FloatArray:
        """Return the sum of the squared target exposures of each query, ``float64[q]``."""
        more = self.relevant.multiply((self.best - self.rest)[:, None]).tocsr()
        difference = more - self.histories.multiply(self.rest[:, None]).tocsr()
        crossed: FloatArray = 2.0 * self.rest * (difference @ self.candidates)
        return (
            self.rest**2 * (self.candidates @ self.candidates)
            + crossed
            + sum_rows(difference.power(2))
        )


@dataclass(frozen=True, kw_only=True)
class _ExpectedExposure(ExposureMetric):
    """A measure of the expected exposure.

    Args:
        attribute: A column of the items that holds groups (authors, genres, ``ngim.gender``): the
            exposures and targets of the members are summed first. By default each item is alone.
        multiple: What an item of several groups gives to each: ``split`` an equal share of its
            exposure, ``full`` all of it.
        ungrouped: Whether items without a group are left out and counted in a warning
            (``exclude``), or are the group ``(none)`` (``group``).
        samples_of: A label of the queries: the lists of one value are samples for one query from a
            stochastic model, and E is the mean over them. By default each query has one list.

    Raises:
        UnknownColumn: The items have no such column, or the queries no such label.
        NothingLeft: Fewer than two groups have an item that may be recommended.
        MissingEvidence: An attribute is given, and there is no items table.

    Range:
        0 or more; undefined for a query without a relevant item.

    Source:
        Diaz, Mitra, Ekstrand, Biega and Carterette, "Evaluating stochastic rankings with expected
        exposure", CIKM 2020.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "test"})

    attribute: str | None = None
    multiple: Multiple = "split"
    ungrouped: Ungrouped = "exclude"
    samples_of: str | None = None

    @property
    def unit(self) -> str:
        """The unit of the scores; blank if lists share a score, which cannot be grouped."""
        return "query" if self.samples_of is None else ""

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return self.needs | (frozenset() if self.attribute is None else {"items"})

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` about the groups and the samples."""
        read_list_samples(evidence, self.samples_of)
        if self.attribute is not None:
            read_item_groups(evidence, self.attribute, self.multiple, self.ungrouped)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        evidence.need("test")
        samples = read_list_samples(evidence, self.samples_of)
        items = build_target_exposure(
            evidence, self.expose_items(evidence), samples, self.browsing, self.gamma
        )
        blocks = iter([items])
        if self.attribute is not None:
            groups = read_item_groups(evidence, self.attribute, self.multiple, self.ungrouped)
            warn_ungrouped(evidence, groups, self.k)
            blocks = _sum_groups(items, groups)
        values = np.concatenate([np.empty(0), *(self._score(block) for block in blocks)])
        return [samples.measure(evidence, np.where(np.isnan(items.best), np.nan, values))]

    def _score(self, exposures: TargetExposure) -> FloatArray:
        raise NotImplementedError


class ExpectedExposureDisparity(_ExpectedExposure):
    """How unequally exposure is distributed within a query: 0 if nothing is shown.

        EE-D(q) = Σ_i E_i²

    E_i is the exposure of item i in the list of query q, or of group i with ``attribute``: the
    mean over the lists of a stochastic model, or that in one list. A single list of n items always
    has EE-D = Σ_{r ≤ n} e(r)²: over items, only several lists for each query (``samples_of``) tell
    models apart. With few lists, EE-D is larger than its expectation. It depends on the number of
    groups and ranks; compare models on the same data only. Undefined for a query without a
    relevant item, as EE-R and EE-L are, so that EE-L = EE-D - 2 EE-R + constant also holds for the
    means.
    """

    direction: ClassVar[Direction] = "lower"

    def _score(self, exposures: TargetExposure) -> FloatArray:
        return exposures.disparity()


class ExpectedExposureRelevance(_ExpectedExposure):
    """How much exposure goes where an ideal ranking gives it.

        EE-R(q) = Σ_i E_i E*_i
        E*_i = (1/m) Σ_{r ≤ m} e(r)  if i is relevant, else (1/(n - m)) Σ_{m < r ≤ n} e(r)

    E_i is the exposure of item i in the list of query q (the mean over ``samples_of``), E*_i the
    target exposure: an ideal ranking has the m relevant items first, in random order, and then the
    others of the n candidates. With ``rbp`` the target of a relevant item is
    (1 - γ^m) / (m (1 - γ)) and that of another (γ^m - γ^n) / ((n - m)(1 - γ)). Relevant are the
    test items that may be recommended; candidates are all items that may be, without the training
    items of the user. A listed item that is no candidate keeps its rank and has target 0. With
    ``attribute``, exposures and targets are summed over the members of each group. Undefined
    without a relevant item.
    """

    direction: ClassVar[Direction] = "higher"

    def _score(self, exposures: TargetExposure) -> FloatArray:
        return exposures.relevance()


class ExpectedExposureLoss(_ExpectedExposure):
    """The distance between the exposure of the items and that of an ideal ranking.

        EE-L(q) = Σ_i (E_i - E*_i)² = EE-D(q) - 2 EE-R(q) + Σ_i (E*_i)²

    E_i is the exposure of item i in the list of query q (the mean over ``samples_of``), E*_i the
    target exposure, in which all relevant items share the first ranks equally and all other
    candidates the ranks after them (see EE-R). With ``attribute``, exposures and targets are
    summed over the members of each group first. 0 is the target itself. One list cannot reach it
    over items if a query has several relevant items, nor can a list shorter than the candidates.
    Undefined without a relevant item.
    """

    direction: ClassVar[Direction] = "lower"

    def _score(self, exposures: TargetExposure) -> FloatArray:
        loss = exposures.disparity() - 2.0 * exposures.relevance() + exposures.target_square()
        return np.maximum(loss, 0.0)  # rounding


def build_target_exposure(
    evidence: Evidence,
    exposure: Matrix,
    samples: ListSamples,
    browsing: BrowsingModel,
    gamma: float,
) -> TargetExposure:
    """Return the exposure of each item by query, with its target.

    ``best`` and ``rest`` are NaN for a query without a relevant item. Test items that are no
    candidates are counted in a warning.
    """
    relevant = select_relevant(evidence)
    n_excluded = int(evidence.n_relevant.sum()) - int(relevant.nnz)
    if n_excluded:
        message = "test items cannot be recommended and are not relevant"
        warn(f"{evidence.metric}: {n_excluded:,} {message}")
    shape = exposure.shape
    n_outside = shape[1] - len(evidence.item_ids)
    relevant, histories = (
        samples.unite(_widen(rows, shape)) for rows in (relevant, select_histories(evidence))
    )
    candidates = np.append(mark_candidates(evidence), np.zeros(n_outside, dtype=bool))
    n_relevant = np.diff(relevant.indptr)
    n_candidates = np.count_nonzero(candidates) - np.diff(histories.indptr)
    n_others = np.maximum(n_candidates - n_relevant, 0)
    totals = np.append(0.0, np.cumsum(weigh_ranks(browsing, gamma, int(candidates.sum()))))
    first = totals[n_relevant]
    last = totals[np.minimum(n_relevant + n_others, totals.size - 1)] - first
    undefined = n_relevant == 0
    best = np.where(undefined, np.nan, first / np.maximum(n_relevant, 1))
    rest = np.where(undefined, np.nan, last / np.maximum(n_others, 1))
    return TargetExposure(
        samples.average(exposure), relevant, histories, candidates.astype(np.float64), best, rest
    )


def _widen(rows: Matrix, shape: tuple[int, int]) -> Matrix:
    from scipy.sparse import csr_array

    return csr_array((rows.data, rows.indices, rows.indptr), shape=shape)


def _sum_groups(items: TargetExposure, groups: ItemGroups) -> Iterator[TargetExposure]:
    for start in range(0, len(items), BLOCK_ROWS):
        rows = np.arange(start, min(start + BLOCK_ROWS, len(items)))
        yield items.take(rows).sum_members(groups)
