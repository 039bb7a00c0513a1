"""Ratings of the responses by people, and the agreement of the raters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.protocols import InputFile
from recbias.core.stage_context import warn
from recbias.formats.response_ratings import rating_shares, read_ratings
from recbias.metrics.resampled_estimates import build_estimate
from recbias.metrics.text.response_metrics import ResponseMetric, get_responses, measure_mean
from recbias.statistics.rater_agreement import Level, krippendorff_alpha, resample_alpha


@dataclass(frozen=True, kw_only=True)
class _HumanMetric(InheritsSections, ResponseMetric):
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

    direction: ClassVar[Direction] = "higher"

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
class HumanRate(_HumanMetric):
    """The share of the ratings that equal a score, such as the rate of biased responses.

        rate = (1/n) Σ_r (1/m_r) Σ_i [v_ri = s]

    v_ri is the rating of response r by one of its m_r raters, and s the score: 1 for yes and 0 for
    no. Raters may lack; a response without a rating is undefined and counted. If the raters agree
    on every response, the interval is Wilson's, else Student's t. Whether a higher rate is better
    depends on the question.

    Args:
        score: The score: 1 for the answer yes.

    Range:
        0 to 1; undefined where no response has a rating.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5.4 (three raters; Tables 6, 16 and 17).
    """

    direction: ClassVar[Direction] = "none"

    score: float = 1.0

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the mean over the responses."""
        shares = rating_shares(self._select(evidence), self.score)
        is_share = bool(np.isin(shares[~np.isnan(shares)], (0.0, 1.0)).all())
        return [measure_mean(evidence, shares, share=is_share)]


@dataclass(frozen=True, kw_only=True)
class HumanScore(_HumanMetric):
    """The mean rating of the responses.

        score = (1/n) Σ_r (1/m_r) Σ_i v_ri

    v_ri is the rating of response r by one of its m_r raters. Raters may lack; a response without
    a rating is undefined and counted.

    Range:
        That of the ratings: 0 to 2 for the scale of CHBias; undefined where no response has one.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 5.4 (the scale of 0, 1 and 2).
    """

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the mean over the responses."""
        ratings = self._select(evidence)
        n_ratings = (~np.isnan(ratings)).sum(axis=0)
        means = np.nansum(ratings, axis=0) / np.maximum(n_ratings, 1)
        return [measure_mean(evidence, np.where(n_ratings > 0, means, np.nan))]


@dataclass(frozen=True, kw_only=True)
class HumanAgreement(_HumanMetric):
    """The agreement of the raters beyond chance: Krippendorff's alpha.

        α = 1 - D_o / D_e

    D_o is the mean disagreement of two ratings of one response, D_e that of any two ratings. 1 is
    perfect agreement, 0 is agreement by chance, negative is less. Responses with fewer than two
    ratings are excluded and counted as undefined. The 95% interval is α ± 1.96 standard deviations
    over bootstrap samples of the responses, the same for every model.

    Args:
        level: ``nominal`` for yes and no, ``interval`` for a scale: the square of the difference.

    Range:
        At most 1; undefined if no response has two ratings, or all ratings are equal.

    Source:
        Krippendorff, "Content Analysis: An Introduction to its Methodology", 2nd edition, 2004,
        chapter 11.
    """

    unit = ""

    level: Level = "nominal"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the agreement, with its bootstrap samples."""
        ratings = self._select(evidence)
        alpha = krippendorff_alpha(ratings, self.level)
        samples = resample_alpha(ratings, self.level, evidence.n_bootstrap, evidence.rng())
        n_several = int(((~np.isnan(ratings)).sum(axis=0) > 1).sum())
        return [build_estimate(alpha, samples, n_several, ratings.shape[1])]
