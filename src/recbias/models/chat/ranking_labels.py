"""The labels of replies that put candidates in order: ranks, and titles without effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray
from recbias.core.stage_context import record_fact, warn
from recbias.language.chat.requests import ChatReply
from recbias.language.replies.reply_outcomes import REASONS, Reason
from recbias.models.chat.candidate_replies import CandidateRanks
from recbias.models.chat.replies import describe_replies
from recbias.models.chat.shortlists import Shortlist

REJECTED = tuple(reason for reason in REASONS if reason != Reason.MISSING)
"""Why a title of a reply has no effect; candidates that are left out are counted beside them."""


def describe_rankings(
    shortlists: Sequence[Shortlist],
    replies: Sequence[ChatReply],
    rankings: Sequence[CandidateRanks],
) -> pd.DataFrame:
    """Return the labels of the replies, in the order of the queries and the orders.

    Beside those of every chat model: ``order``, the number of the order from 1; ``rank.1``,
    ``rank.2``, ... the rank of each candidate of the other model, the best first; ``first_slot``,
    whether the candidate that is shown first has the first rank; ``left_out``, the number of
    candidates that the reply leaves out; and the number of titles without effect for each reason,
    ``rejected.unknown``.

    Args:
        shortlists: The candidates of each query.
        replies: The replies, one for each order of each query.
        rankings: The ranks of the candidates of each query.
    """
    prompts = [prompt for shortlist in shortlists for prompt in shortlist.prompts]
    parsed = [text for ranking in rankings for text in ranking.outcomes.describe_ranks()]
    columns: dict[str, Any] = dict(describe_replies(prompts, replies, parsed))
    columns["order"] = _join([np.arange(len(shortlist.orders)) + 1 for shortlist in shortlists])
    columns |= _list_ranks(rankings)
    pairs = zip(shortlists, rankings, strict=True)
    columns["first_slot"] = _join([mark_first_slot(*pair) for pair in pairs])
    columns["left_out"] = _join([ranking.count_left_out() for ranking in rankings])
    for reason in REJECTED:
        counts = [ranking.count_rejected(reason) for ranking in rankings]
        columns[f"rejected.{reason.name.lower()}"] = _join(counts)
    return pd.DataFrame(columns)


def mark_first_slot(shortlist: Shortlist, ranking: CandidateRanks) -> AnyArray:
    """Return whether each reply ranks the candidate first that it was shown first.

    1 if it does, 0 if not, NaN if the reply names no candidate, ``float64[orders]``.
    """
    ranks = np.take_along_axis(ranking.ranks, shortlist.orders[:, :1], axis=1)[:, 0]
    return np.where(ranking.is_read, ranks == 1, np.nan)


def _list_ranks(rankings: Sequence[CandidateRanks]) -> dict[str, AnyArray]:
    """Return a column for each candidate; NaN where a query has fewer."""
    blocks = [ranking.ranks for ranking in rankings]
    width = max((block.shape[1] for block in blocks), default=0)
    ranks = np.full((sum(map(len, blocks)), width), np.nan)
    start = 0
    for block in blocks:
        ranks[start : start + len(block), : block.shape[1]] = block
        start += len(block)
    return {f"rank.{column}": values for column, values in enumerate(ranks.T, 1)}


def _join(parts: Sequence[AnyArray]) -> AnyArray:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def record_counts(labels: pd.DataFrame) -> None:
    """Record what replies left out and what was without effect, and warn of unread replies."""
    record_fact("candidates_left_out", int(labels["left_out"].sum()))
    for name in (reason.name.lower() for reason in REJECTED):
        n_rejected = int(labels[f"rejected.{name}"].sum())
        if n_rejected:
            record_fact(f"titles_rejected.{name}", n_rejected)
    n_unread = int(labels["first_slot"].isna().sum())
    if n_unread:
        warn(f"{n_unread:,} of {len(labels):,} replies name no candidate: left out of the ranking")
