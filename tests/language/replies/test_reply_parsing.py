from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.language.answers import parse_reply
from recbias.language.endpoints import find_answer

HEAT, CASINO, BABE = ("Heat", 1995), ("Casino", 1995), ("Babe", 1995)


def read_titles(text: str, k: int = 10) -> list[tuple[str, int | None]]:
    return [(proposal.title, proposal.year) for proposal in parse_reply(text, k).proposals]


@pytest.mark.parametrize(
    "text",
    [
        "I am sorry, but I cannot recommend movies.",
        "Sorry.\nI do not know this person.\nPlease ask again.",
        "I recommend Heat (1995) and Casino (1995).",
        "{}",
        "[]",
        "[1, 2, 3]",
    ],
)
def test_text_without_a_list_is_prose(text: str) -> None:
    reply = parse_reply(text, 10)
    assert reply.proposals == ()
    assert reply.is_prose


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_blank_reply_is_not_prose(text: str) -> None:
    reply = parse_reply(text, 10)
    assert (reply.proposals, reply.is_prose) == ((), False)


@pytest.mark.parametrize(
    "text",
    [
        "1. Heat (1995)\n2.\n3. Babe (1995)",
        "1. Heat (1995)\n2. ***\n3. Babe (1995)",
        f"1. Heat (1995)\n2. {'very ' * 50}long\n3. Babe (1995)",
        '["Heat (1995)", 7, "Babe (1995)"]',
        '["Heat (1995)", null, "Babe (1995)"]',
        '["Heat (1995)", {"rating": 5}, "Babe (1995)"]',
    ],
)
def test_item_without_a_title_keeps_its_rank(text: str) -> None:
    assert read_titles(text) == [HEAT, ("", None), BABE]


def test_at_most_k_titles_are_read_from_a_reply_that_repeats_itself() -> None:
    assert read_titles("1. Heat (1995)\n" * 5000, 10) == [HEAT] * 10
    assert read_titles("Heat (1995), " * 5000, 10) == [HEAT] * 10


def test_item_is_kept_as_written() -> None:
    proposal = parse_reply('1. **"Heat"** (1995) - a thriller', 1).proposals[0]
    assert (proposal.title, proposal.year) == HEAT
    assert proposal.line == '**"Heat"** (1995) - a thriller'


@pytest.mark.parametrize("unit", ["-", " ", "1. ", "[", '{"a":', "<title>a", "1\n", "<think>"])
def test_hostile_text_is_read_in_a_short_time(unit: str) -> None:
    start = time.process_time()
    parse_reply(find_answer("1. " + unit * 200_000) or "", 10)
    parse_reply(unit * 200_000, 10)
    assert time.process_time() - start < 5


@given(st.text(max_size=300), st.integers(1, 5))
def test_any_text_is_read(text: str, k: int) -> None:
    reply = parse_reply(text, k)
    assert len(reply.proposals) <= k
    assert not (reply.is_prose and reply.proposals)


WORDS = st.lists(
    st.sampled_from(["Red", "River", "Night", "Iron", "Blue"]), min_size=1, max_size=4
)


@given(st.lists(st.tuples(WORDS.map(" ".join), st.integers(1900, 2029)), min_size=1, max_size=10))
def test_numbered_list_and_json_are_read_back(titles: list[tuple[str, int]]) -> None:
    lines = [f"{rank}. {title} ({year})" for rank, (title, year) in enumerate(titles, 1)]
    assert read_titles("\n".join(lines)) == titles
    objects = [{"title": title, "year": year} for title, year in titles]
    assert read_titles(json.dumps({"movies": objects})) == titles
