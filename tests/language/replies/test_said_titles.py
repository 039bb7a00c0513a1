from __future__ import annotations

import pytest

from recbias.language.answers import parse_reply
from recbias.language.replies import index_said_titles


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
