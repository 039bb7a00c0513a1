"""What ``recbias human import`` prints: agreement of the raters, and rates of the models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np

from recbias.formats.ratings import YES_NO, ResponseRatings, rating_shares
from recbias.statistics.intervals import rating_share_interval
from recbias.statistics.rater_agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha


def describe_agreement(ratings: ResponseRatings) -> Iterator[str]:
    """Yield the counts of the ratings and the agreement of the raters, one line each."""
    table = ratings.ratings
    is_rated = ~np.isnan(table)
    yield f"raters: {len(ratings.raters):,}"
    yield f"responses: {len(ratings):,}"
    yield f"with an answer of every rater: {int(is_rated.all(axis=0).sum()):,}"
    yield f"without an answer: {int((~is_rated.any(axis=0)).sum()):,}"
    for rater, row in zip(ratings.raters, is_rated, strict=True):
        if not row.all():
            yield f"answers missing from {rater}: {int((~row).sum()):,}"
    yield f"Krippendorff's alpha: {krippendorff_alpha(table):.4g}"
    if np.unique(table[is_rated]).size > 2:
        yield f"Krippendorff's alpha (interval): {krippendorff_alpha(table, 'interval'):.4g}"
    yield f"Fleiss' kappa: {fleiss_kappa(table):.4g}"
    for a, b in combinations(range(len(ratings.raters)), 2):
        kappa, _ = cohen_kappa(table[a], table[b])
        yield f"Cohen's kappa of {ratings.raters[a]} and {ratings.raters[b]}: {kappa:.4g}"


def describe_rates(
    ratings: ResponseRatings, question: str, answers: Mapping[str, float]
) -> Iterator[str]:
    """Yield the share of each answer for each model, with its 95% interval, one line each.

    The share of a response is that of its ratings; a model has the mean over its responses, as
    the metric ``human_rate`` has.
    """
    is_yes_no = answers == YES_NO
    for model in dict.fromkeys(name for names in ratings.models for name in names):
        is_of_model = np.array([model in names for names in ratings.models])
        for score in [1.0] if is_yes_no else sorted(set(answers.values()), reverse=True):
            of_model = ratings.ratings[:, is_of_model]
            shares = rating_shares(of_model, score)
            n = int((~np.isnan(shares)).sum())
            low, high = rating_share_interval(shares, int((~np.isnan(of_model)).sum()))
            rate = float(np.nanmean(shares)) if n else np.nan
            interval = f"{rate:.4g} [{low:.4g}, {high:.4g}]"
            name = question if is_yes_no else f"{question} {score:g}"
            yield f"{model}: {name}: {interval}, {n:,} responses"
