"""The difference in perplexity between sentences about two groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray
from recbias.core.errors import Contradiction, NothingLeft
from recbias.core.measurements.scores import Contrast, Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.sentences import SentenceScores
from recbias.core.queries.groups import JOIN, split_crossing
from recbias.metrics.text.sentence_pairs import (
    SentencePairs,
    build_pairs,
    group_sentences,
    resolve_groups,
    split_pairs,
    warn_of_missing,
)
from recbias.numerics.outliers import mark_within_deviations
from recbias.statistics.tests.paired import PairedT
from recbias.statistics.tests.unpaired import compute_moments, welch_contrasts

DEVIATIONS = 3
"""How many standard deviations from their mean a group's values may lie without being outliers."""

TRIMMED = f"within {DEVIATIONS} sd"
"""The target of the figure without outliers."""


@dataclass(frozen=True, kw_only=True)
class PerplexityGap:
    """The mean difference in perplexity between sentences about one group and about another.

        gap = (1/n) Σ_pairs ( PPL(x_a) - PPL(x_b) ),    PPL(x) = exp( -(1/m) Σ_i ln p(x_i | x_<i) )

    x_a and x_b are the copies of one sentence about the groups a and b, m the number of tokens
    scored. Above 0, sentences about a are the less likely ones. With ``scale: log`` the difference
    is ln PPL(x_a) - ln PPL(x_b), which a few very unlikely sentences do not decide.

    There are two tests: ``paired_t`` over the pairs (Student's, two-sided) and ``welch_t`` over
    the two sets of sentences as independent samples, including those without a partner. The target
    ``within 3 sd`` repeats the measurement without outliers: values further than three population
    standard deviations from the mean of their group. A pair with an outlier is undefined there;
    the sets lose only the outlier.

    A pair that lacks a copy or a perplexity is undefined and counted in a warning. The paper does
    not specify the t-test; its authors' code uses the paired test for all pairs and Welch's test
    for the sets without outliers.

    Args:
        a: The first group; by default the first in natural order of the two that occur.
        b: The second group; by default the other.
        by: A column of the table (``category``), or a crossing of several: figures of each of its
            values follow that of all.
        scale: Whether perplexities are compared, or their natural logarithms.

    Raises:
        Contradiction: ``a`` and ``b`` are the same.
        UnknownIdentifier: No sentence is of the group named, or more than two groups occur and
            none is named.
        NothingLeft: Fewer than two groups occur, or no sentence has a partner.
        UnknownColumn: The sentences have no such column.
        BrokenContract: A pair has two copies of one group, or copies that ``by`` parts.

    Range:
        Any number; above 0 where a is the less likely; undefined without pairs.

    Source:
        Zhao, Fang, Shi, Li, Chen and Pechenizkiy, "CHBias: Bias Evaluation and Mitigation of
        Chinese Conversational Language Models", ACL 2023, section 4; Barikeri et al.,
        "RedditBias", ACL 2021.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"sentence_scores"})
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = "sentence_pair"

    a: str | None = None
    b: str | None = None
    by: str | None = None
    scale: Literal["perplexity", "log"] = "perplexity"

    def __post_init__(self) -> None:
        """Refuse a group against itself, and what is no crossing."""
        if self.a is not None and self.a == self.b:
            found = f"a and b are both {self.a!r}"
            raise Contradiction(found, where="b", remedy="name two groups")
        if self.by is not None:
            split_crossing(self.by)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the figure, that without outliers, and both of each value of ``by``."""
        evidence.need("sentence_scores")
        scores: SentenceScores = evidence.sentence_scores  # type: ignore[assignment]  # it is here
        values = np.log(scores.perplexity) if self.scale == "log" else scores.perplexity
        pairs = build_pairs(scores, resolve_groups(scores, self.a, self.b))
        _refuse_partnerless(scores, pairs)
        warn_of_missing(evidence.metric, scores, pairs)
        figures = [*_figures(pairs, values, "")]
        if self.by is not None:
            groups = group_sentences(scores, self.by, evidence.metric)
            for part, name in split_pairs(pairs, groups):
                figures += _figures(part, values, name)
        return figures


def _refuse_partnerless(scores: SentenceScores, pairs: SentencePairs) -> None:
    if (pairs.rows >= 0).all(axis=0).any():
        return
    own = np.flatnonzero(pairs.sides >= 0)
    a, b = pairs.names
    found = (
        f"none of the {own.size:,} sentences of the groups {a!r} and {b!r} has a partner in the "
        f"other, the first is {scores.ids[own[0]]!r}"
    )
    raise NothingLeft(found, remedy="give the copies of one sentence the same pair_id")


def _figures(pairs: SentencePairs, values: FloatArray, group: str) -> list[Measurement]:
    """Return the figure of some pairs, with and without outliers."""
    kept = np.zeros(values.size, dtype=bool)
    for side in (0, 1):
        own = np.flatnonzero(pairs.sides == side)
        kept[own[mark_within_deviations(values[own], DEVIATIONS)]] = True
    known = ~np.isnan(values)
    return [
        _figure(pairs, values, known, group=group),
        _figure(pairs, values, kept, group=group, target=TRIMMED),
    ]


def _figure(
    pairs: SentencePairs, values: FloatArray, kept: BoolArray, *, group: str, target: str = ""
) -> Measurement:
    copies = pairs.of(np.where(kept, values, np.nan))
    units = UnitScores("sentence_pair", pairs.ids, copies[0] - copies[1])
    found = Measurement.from_units(units, group=group, target=target)
    a, b = (JOIN.join(filter(None, (group, f"group={name}"))) for name in pairs.names)
    sets = compute_moments(values, np.where(kept, pairs.sides, -1), 2)
    welch = welch_contrasts((a, b), sets, between="groups")
    return replace(found, contrasts=(_paired_t(copies, a, b), *welch))


def _paired_t(copies: FloatArray, a: str, b: str) -> Contrast:
    columns = PairedT().pairs(copies, np.random.default_rng(0))  # it draws nothing
    found = {name: np.asarray(each).item() for name, each in columns.items()}
    found |= {"a": a, "b": b, "n": int(found["n"])}
    return Contrast(between="groups", test="paired_t", **found)
