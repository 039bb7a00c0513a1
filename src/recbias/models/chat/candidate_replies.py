"""Replies that put given candidates in an order: the rank of each candidate in each reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, Codes, FloatArray
from recbias.language.prompts.recommendation_prompts import HistoryItem
from recbias.language.replies.catalogue_titles import index_titles
from recbias.language.replies.reply_outcomes import Reason, ReplyOutcomes, resolve_replies
from recbias.language.replies.reply_parsing import parse_reply

TITLES_PER_CANDIDATE = 2
"""How many titles of a reply are read for each candidate, those that are invalid included."""


@dataclass(frozen=True, eq=False)
class CandidateRanks:
    """The ranks of the candidates of one query in the replies to several orders of presentation.

    Args:
        ranks: The rank from 1 of each candidate, ``float64[orders, n]``; NaN where the reply
            names none of them.
        outcomes: What became of each title of each reply; items are positions of candidates.
    """

    ranks: FloatArray
    outcomes: ReplyOutcomes

    @property
    def is_read(self) -> BoolArray:
        """Which replies name at least one candidate, ``bool[orders]``."""
        return np.asarray(~np.isnan(self.ranks).any(axis=1))

    def count_left_out(self) -> AnyArray:
        """Return how many candidates each reply leaves out, ``int64[orders]``."""
        return np.asarray(self.ranks.shape[1] - (self.outcomes.items >= 0).sum(axis=1))

    def count_rejected(self, reason: Reason) -> AnyArray:
        """Return how many titles of each reply are invalid for a reason, ``int64[orders]``."""
        is_rejected = (self.outcomes.reasons == reason) & (self.outcomes.titles != "")
        return np.asarray(is_rejected.sum(axis=1))

    def order_candidates(self) -> tuple[AnyArray, FloatArray]:
        """Return the candidates by their mean rank, and these means.

        Ties, and candidates of a query without a reply that can be read, are in their own order.
        """
        read = self.ranks[self.is_read]
        n = self.ranks.shape[1]
        means = read.mean(axis=0) if len(read) else np.arange(1.0, n + 1)
        order = np.argsort(means, kind="stable")
        return order, means[order]


def rank_candidates(
    replies: Sequence[str], titles: Sequence[HistoryItem], threshold: float | None
) -> CandidateRanks:
    """Return the rank of each candidate in each reply; titles match these candidates only.

    Candidates that a reply leaves out come after those that it names, in their own order.

    >>> titles = [("Heat", 1995), ("Alien", 1979), ("Jaws", 1975)]
    >>> rank_candidates(["1. Jaws (1975)"], titles, None).ranks.tolist()
    [[2.0, 3.0, 1.0]]

    Args:
        replies: The replies to one query; blank where there is none.
        titles: The title and year of each candidate, the best first: it is meant where a title
            matches several.
        threshold: The least similarity of a title that is not matched exactly; see
            ``CatalogueTitles``.
    """
    n = len(titles)
    parsed = [parse_reply(text, TITLES_PER_CANDIDATE * n) for text in replies]
    n_places = max([n, *(len(reply.proposals) for reply in parsed)])
    names, years = [name for name, _ in titles], [year for _, year in titles]
    catalogue = index_titles(names, years, -np.arange(n), threshold=threshold)
    outcomes = resolve_replies(parsed, n_places, catalogue)
    return CandidateRanks(complete_ranks(outcomes.items, n), outcomes)


def complete_ranks(items: Codes, n: int) -> FloatArray:
    """Return the rank of each of ``n`` candidates in lists of some of them, ``float64[q, n]``.

    >>> complete_ranks(np.array([[2, -1, 0], [-1, -1, -1]]), 3).tolist()
    [[2.0, 3.0, 1.0], [nan, nan, nan]]

    Args:
        items: The positions of candidates, each once in a list, ``int32[q, places]``; -1 for none.
        n: The number of candidates.
    """
    places = np.full((len(items), n), items.shape[1])
    rows, columns = np.nonzero(items >= 0)
    places[rows, items[rows, columns]] = columns
    ranks = places.argsort(axis=1, kind="stable").argsort(axis=1).astype(np.float64) + 1
    ranks[(items < 0).all(axis=1)] = np.nan
    return ranks
