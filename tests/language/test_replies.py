from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from recbias.language.answers import parse_reply
from recbias.language.replies import Reason, ReplyOutcomes, index_said_titles, resolve_replies
from recbias.language.titles import index_titles

FILMS = index_titles(["Heat (1995)", "Casino (1995)", "Babe (1995)", "Inception (2010)"])
N_ITEMS = 4
MATCHED, FORMAT, WATCHED, REPEATED, NEWER, UNKNOWN, MISSING = Reason


def resolve(*texts: str, k: int = 6, year_limit: int | None = 2008) -> ReplyOutcomes:
    """Resolve replies to queries that have all watched Casino."""
    rows = range(len(texts))
    histories = sp.csr_array(
        (np.ones(len(texts)), (list(rows), [1] * len(texts))), shape=(len(texts), N_ITEMS)
    )
    replies = [parse_reply(text, k) for text in texts]
    return resolve_replies(replies, k, FILMS, histories=histories, year_limit=year_limit)


def test_each_rank_has_an_item_or_one_reason() -> None:
    outcomes = resolve(
        "1. Heat (1995)\n2. Casino (1995)\n3. Heat\n4.\n5. Avatar (2009)\n6. Zorn (1990)",
        "1. Babe (1995)\n2. Inception (2010)\n3. Zorn (1990)\n4. zorn! (1990)\n5. Casino"
        "\n6. Casino",
        "I am sorry.",
        "",
        "1. Heat (1995)",
    )
    assert outcomes.items.tolist() == [
        [0, -1, -1, -1, -1, -1],
        [2, -1, -1, -1, -1, -1],
        [-1] * 6,
        [-1] * 6,
        [0, -1, -1, -1, -1, -1],
    ]
    assert outcomes.reasons.tolist() == [
        [MATCHED, WATCHED, REPEATED, FORMAT, NEWER, UNKNOWN],
        [MATCHED, NEWER, UNKNOWN, REPEATED, WATCHED, WATCHED],
        [FORMAT] * 6,
        [MISSING] * 6,
        [MATCHED, *[MISSING] * 5],
    ]
    assert outcomes.titles[0].tolist()[:3] == ["Heat (1995)", "Casino (1995)", "Heat"]


def test_reasons_are_counted_for_each_reply() -> None:
    outcomes = resolve("1. Heat (1995)\n2. Zorn (1990)\n3. Zorg (1990)", "Sorry.", k=4)
    counts = {reason: row.tolist() for reason, row in outcomes.count_reasons().items()}
    assert counts == {
        "format": [0, 4],
        "watched": [0, 0],
        "repeated": [0, 0],
        "newer": [0, 0],
        "unknown": [2, 0],
        "missing": [1, 0],
    }


def test_without_a_limit_or_histories_nothing_is_newer_or_watched() -> None:
    replies = [parse_reply("1. Inception (2010)\n2. Casino (1995)\n3. Avatar (2009)", 3)]
    outcomes = resolve_replies(replies, 3, FILMS)
    assert outcomes.items.tolist() == [[3, 1, -1]]
    assert outcomes.reasons.tolist() == [[MATCHED, MATCHED, UNKNOWN]]


def test_year_of_the_item_decides_whether_it_is_newer() -> None:
    # Inception is of 2010, whatever year within one the reply says
    assert resolve("1. Inception (2009)", k=1, year_limit=2009).reasons.tolist() == [[NEWER]]
    assert resolve("1. Inception (2011)", k=1, year_limit=2010).reasons.tolist() == [[MATCHED]]


def test_fuzzy_and_ambiguous_matches_are_counted() -> None:
    films = index_titles(["Emma (1996)", "Emma (1996)", "Inception (2010)"])
    replies = [parse_reply("1. Emma (1996)\n2. Inceptionn (2010)\n3. Zorn (1990)", 3)]
    outcomes = resolve_replies(replies, 3, films)
    assert outcomes.items.tolist() == [[0, 2, -1]]
    assert (outcomes.n_fuzzy, outcomes.n_ambiguous) == (1, 1)


def test_invalid_ranks_are_items_outside_the_catalogue() -> None:
    outcomes = resolve("1. Zorn (1990)\n2. Heat (1995)\n3. Casino (1995)\n4. Heat", "Sorry.", k=5)
    lists = outcomes.to_ranked_lists(N_ITEMS)
    # code 4 is Zorn, 5 Casino, 6 the repeated Heat; from 7 on the ranks of the prose reply
    assert lists.items.tolist() == [[4, 0, 5, 6, -1], [7, 8, 9, 10, 11]]
    assert lists.outside[:4].tolist() == [
        "(unknown, rank 1) Zorn (1990)",
        "(watched, rank 3) Casino (1995)",
        "(repeated, rank 4) Heat",
        "(format, rank 1)",
    ]
    assert np.isnan(lists.scores).all()


def test_commonest_unmatched_titles_are_listed_with_spellings_together() -> None:
    outcomes = resolve(
        "1. Zorn (1990)\n2. Avatar (2009)\n3. Heat (1995)",
        "1. ZORN! (1990)\n2. Casino (1995)",
        "1. Zorg\x1b[2J (1990)\n2. ---",
        "Sorry.",
    )
    table = outcomes.list_unmatched_titles(3)
    assert table.columns.tolist() == ["title", "reason", "count"]
    assert table.to_numpy().tolist() == [
        ["Zorn (1990)", "unknown", 2],
        ["Avatar (2009)", "newer", 1],
        ["Zorg\\x1b[2J (1990)", "unknown", 1],
    ]
    assert len(outcomes.list_unmatched_titles()) == 4


def index(*replies: str) -> tuple[list[str], list[list[int]]]:
    """Return the titles of replies of one title a line, and the codes of each reply."""
    parsed = [parse_reply(text, 10) for text in replies]
    titles, catalogue = index_said_titles(parsed)
    codes = [
        catalogue.match(
            [proposal.title for proposal in reply.proposals],
            [proposal.year for proposal in reply.proposals],
        ).codes.tolist()
        for reply in parsed
    ]
    return titles.tolist(), codes


def test_spellings_of_a_title_are_one_item() -> None:
    titles, codes = index(
        "1. The Matrix\n2. Amélie", "1. MATRIX, The\n2. amelie!", "1. The Matrix"
    )
    assert titles == ["Amélie", "The Matrix"]
    assert codes == [[1, 0], [1, 0], [1]]


@pytest.mark.parametrize(
    ("replies", "n_titles"),
    [
        (("1. Heat (1995)", "1. Heat"), 1),  # a title without year is that of the other
        (("1. Heat (1995)", "1. Heat (1996)"), 1),  # years may differ by one
        (("1. Heat (1995)", "1. Heat (1986)"), 2),
        (("1. Heat (1995)", "1. Heat (1995)", "1. Heat (1986)", "1. Heat"), 2),
        (("1. Hello - Adele", "1. Hello - Lionel Richie"), 2),
    ],
)
def test_years_and_artists_tell_titles_apart(replies: tuple[str, ...], n_titles: int) -> None:
    titles, codes = index(*replies)
    assert len(titles) == n_titles
    assert {code for row in codes for code in row} == set(range(n_titles))


def test_replies_without_titles_have_no_items() -> None:
    assert index("", "I am sorry, I cannot do that.") == ([], [[], []])
