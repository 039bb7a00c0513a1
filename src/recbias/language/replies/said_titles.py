"""The titles of replies as a catalogue, where the dataset has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from recbias.core.arrays import Ids
from recbias.language.replies.catalogue_titles import CatalogueTitles, index_titles
from recbias.language.replies.reply_parsing import ParsedReply
from recbias.language.replies.title_entries import MAX_YEAR_DIFFERENCE
from recbias.language.replies.title_forms import list_title_forms, remove_article


def index_said_titles(replies: Iterable[ParsedReply]) -> tuple[Ids, CatalogueTitles]:
    """Return the distinct titles of replies, and their index, by which equal titles match.

    Titles are equal if they have the same normalised form without its leading article, and their
    years differ by at most one. A title without year is the one with the most frequent year.

    Returns:
        The titles, as most often written, in the order of their forms, and the index.
    """
    spellings: dict[str, Counter[tuple[str, int | None]]] = {}
    for reply in replies:
        for proposal in reply.proposals:
            for form in list_title_forms(proposal.title)[:1]:
                counts = spellings.setdefault(remove_article(form), Counter())
                counts[proposal.title, proposal.year] += 1
    entries = [
        (*spelling, counts[spelling])
        for _, counts in sorted(spellings.items())
        for spelling in _select_years(counts)
    ]
    names = [f"{title} ({year})" if year else title for title, year, _ in entries]
    catalogue = index_titles(
        [title for title, _, _ in entries],
        [year for _, year, _ in entries],
        np.array([count for _, _, count in entries]),
        threshold=None,
    )
    return np.array(names, dtype=object), catalogue


def _select_years(counts: Counter[tuple[str, int | None]]) -> list[tuple[str, int | None]]:
    """Return a spelling for each year of one title, years that are close together once."""
    years: Counter[int | None] = Counter()
    for (_, year), count in counts.items():
        years[year] += count
    kept: list[int | None] = []
    for year, _ in sorted(years.items(), key=lambda pair: (-pair[1], pair[0] or 0)):
        is_new = year and all(abs(year - other) > MAX_YEAR_DIFFERENCE for other in kept if other)
        kept += [year] if is_new else []
    ordered = sorted(counts, key=lambda spelling: (-counts[spelling], str(spelling)))
    return [
        next(spelling for spelling in ordered if spelling[1] == year) for year in kept or [None]
    ]
