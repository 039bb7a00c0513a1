"""Expected exposure: what items or groups of items get, against what an ideal ranking gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.exposure.exposure_metric import ExposureMetric
from recbias.metrics.exposure.hidden_groups import drop_intervals
from recbias.metrics.exposure.item_groups import (
    Multiple,
    Ungrouped,
    read_item_groups,
    warn_ungrouped,
)
from recbias.metrics.exposure.list_samples import read_list_samples
from recbias.metrics.exposure.target_exposure import TargetExposure, build_target_exposure

BLOCK_ROWS = 2**14
"""The number of queries whose groups are summed at once."""


@dataclass(frozen=True, kw_only=True)
class _ExpectedExposure(ExposureMetric):
    """A measure of the expected exposure.

    Args:
        attribute: A column of the items that holds groups (authors, genres, ``ngim.gender``): the
            exposures and targets of the members are summed first. By default each item is alone.
            The authors' code does so with complete judgements; without, and in TREC's script of
            2022, only relevant members count.
        multiple: What an item of several groups gives to each: ``split`` an equal share of its
            exposure, ``full`` all of it.
        ungrouped: Whether items without a group are left out and counted in a warning
            (``exclude``), or are the group ``(none)`` (``group``).
        samples_of: A label of the queries: the lists of one value are samples for one query from a
            stochastic model, and E is the mean over them. By default each query has one list.

    Raises:
        UnknownColumn: The items have no such column, or the queries no such label.
        WrongType: The column holds numbers with fractions, which are no groups.
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
            blocks = (block.sum_members(groups) for block in items.split(BLOCK_ROWS))
        values = np.concatenate([np.empty(0), *(self._score(block) for block in blocks)])
        scores = [samples.measure(evidence, np.where(np.isnan(items.best), np.nan, values))]
        return scores if self.attribute is None else drop_intervals(evidence, groups, scores)

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
