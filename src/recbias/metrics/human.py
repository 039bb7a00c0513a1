"""Ratings of the responses by people, and the agreement of the raters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from recbias.core.context import warn
from recbias.core.dataset import FloatArray, Ids
from recbias.core.docstrings import InheritsSections
from recbias.core.evidence import Evidence, Responses
from recbias.core.measures import Direction, Measurement, UnitScores
from recbias.core.plugins import InputFile
from recbias.formats.ratings import rating_shares, read_ratings
from recbias.metrics.perplexity import group_sentences, require_label
from recbias.metrics.text import get_responses
from recbias.statistics.agreement import Level, krippendorff_alpha, resample_alpha
from recbias.statistics.bootstrap import build_estimate
from recbias.statistics.intervals import rating_share_interval


@dataclass(frozen=True, kw_only=True)
class _HumanMetric(InheritsSections):
    """A metric of imported ratings.

    Args:
        ratings: The file that ``recbias human import`` wrote. Ratings belong to the query and the
            text of a response: a model whose responses have changed since has no ratings for
            them.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: A column of the file is missing.
        MalformedLine: A rating is no number, or a rater rated a response twice.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"responses"})
    unit: ClassVar[str] = "response"

    ratings: InputFile

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the file is malformed."""
        read_ratings(self.ratings)

    def _select(self, evidence: Evidence) -> FloatArray:
        """Return the ratings of the responses, ``float64[raters, responses]``."""
        responses = get_responses(evidence)
        ratings = read_ratings(self.ratings).select(responses.ids, responses.texts)
        n_unrated = int(np.isnan(ratings).all(axis=0).sum())
        if n_unrated:
            total = f"{len(responses):,} responses"
            warn(f"{evidence.metric}: {n_unrated:,} of {total} have no rating")
        return ratings


@dataclass(frozen=True, kw_only=True)
class _HumanMean(_HumanMetric):
    """A metric with one value per response.

    Args:
        by: A label of the responses or of their queries (``category``), or a crossing of labels:
            the means of its values follow that of all responses.

    Raises:
        UnknownColumn: A column of the file is missing, or the responses have no label ``by``.
    """

    by: str | None = None

    def check_labels(self, labels: Sequence[str]) -> None:
        """Raise an error if the responses and their queries have no label ``by``."""
        require_label(self.by, labels, "response", where="by")

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the mean over the responses, then that of each value of ``by``."""
        ratings, ids = self._select(evidence), get_responses(evidence).ids
        measurements = [self._measure(ids, ratings)]
        if self.by is not None:
            labelled = _add_query_labels(evidence)
            groups = group_sentences(labelled, self.by, evidence.metric, "response")
            for code, name in enumerate(groups.names):
                rows = groups.find_rows(code)
                part = self._measure(ids[rows], ratings[:, rows])
                measurements.append(replace(part, group=name))
        return measurements

    def _measure(self, ids: Ids, ratings: FloatArray) -> Measurement:
        return Measurement.from_units(UnitScores("response", ids, self._summarize(ratings)))

    def _summarize(self, ratings: FloatArray) -> FloatArray:
        """Return the value of each response from ``float64[raters, responses]``."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class HumanRate(_HumanMean):
    """The share of the ratings that equal a score, such as the rate of biased responses.

        rate = (1/n) Σ_r (1/m_r) Σ_i [v_ri = s]

    v_ri is the rating of response r by one of its m_r raters, and s the score: 1 for yes and 0 for
    no. Raters may lack; a response without a rating is undefined and counted. The 95%
    interval is Wilson's with n p (1 - p) / s² in place of n, where s² is the variance of the
    shares of the n responses: raters of one response do not count as independent. Whether a
    higher rate is better depends on the question.

    Args:
        score: The score: 1 for the answer yes.

    Range:
        0 to 1; undefined where no response has a rating.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5.4 (three raters; Tables 6, 16 and 17).
    """

    direction: ClassVar[Direction] = "none"

    score: float = 1.0

    def _measure(self, ids: Ids, ratings: FloatArray) -> Measurement:
        measurement, n_ratings = super()._measure(ids, ratings), int((~np.isnan(ratings)).sum())
        low, high = rating_share_interval(self._summarize(ratings), n_ratings)
        return replace(measurement, ci_low=low, ci_high=high)

    def _summarize(self, ratings: FloatArray) -> FloatArray:
        return rating_shares(ratings, self.score)


@dataclass(frozen=True, kw_only=True)
class HumanScore(_HumanMean):
    """The mean rating of the responses.

        score = (1/n) Σ_r (1/m_r) Σ_i v_ri

    v_ri is the rating of response r by one of its m_r raters. Raters may lack; a response without
    a rating is undefined and counted.

    Range:
        That of the ratings: 0 to 2 for the scale of CHBias; undefined where no response has one.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5.4 (the scale of 0, 1 and 2).
    """

    direction: ClassVar[Direction] = "higher"

    def _summarize(self, ratings: FloatArray) -> FloatArray:
        n_ratings = (~np.isnan(ratings)).sum(axis=0)
        means = np.nansum(ratings, axis=0) / np.maximum(n_ratings, 1)
        return np.asarray(np.where(n_ratings > 0, means, np.nan))


@dataclass(frozen=True, kw_only=True)
class HumanAgreement(_HumanMetric):
    """The agreement of the raters beyond chance: Krippendorff's alpha.

        α = 1 - D_o / D_e

    D_o is the mean disagreement of two ratings of one response, D_e that of any two ratings. 1 is
    perfect agreement, 0 is agreement by chance, negative is less. Responses with fewer than two
    ratings are excluded and counted as undefined. The 95% interval is α ± 1.96 standard deviations
    over bootstrap samples of the responses, the same for every model. It is a property of the
    ratings, so no value is better for a model.

    Args:
        level: ``nominal`` for yes and no, ``interval`` for a scale: the square of the difference.

    Range:
        At most 1; undefined if no response has two ratings, or all ratings are equal.

    Source:
        Krippendorff, "Content Analysis: An Introduction to its Methodology", 2nd edition, 2004,
        chapter 11.
    """

    direction: ClassVar[Direction] = "none"
    unit = ""

    level: Level = "nominal"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the agreement, with its bootstrap samples."""
        ratings = self._select(evidence)
        alpha = krippendorff_alpha(ratings, self.level)
        samples = resample_alpha(ratings, self.level, evidence.n_bootstrap, evidence.rng())
        n_several = int(((~np.isnan(ratings)).sum(axis=0) > 1).sum())
        return [build_estimate(alpha, samples, n_several, ratings.shape[1])]


def _add_query_labels(evidence: Evidence) -> Responses:
    """Return the responses with those labels of their queries that they lack."""
    responses, queries = get_responses(evidence), evidence.queries
    frame = queries.labels.frame.set_axis(queries.ids.ids, axis=0)
    frame = frame.drop(columns=[name for name in frame if name in responses.labels])
    added = frame.reindex(responses.ids).reset_index(drop=True).astype(object)
    return replace(
        responses, labels=pd.concat([responses.labels, added.where(added.notna(), None)], axis=1)
    )
