from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.language.answers import parse_reply
from recbias.language.thought import find_answer

HEAT, CASINO, BABE = ("Heat", 1995), ("Casino", 1995), ("Babe", 1995)
ALL = [HEAT, CASINO, BABE]


def read_titles(text: str, k: int = 10) -> list[tuple[str, int | None]]:
    return [(proposal.title, proposal.year) for proposal in parse_reply(text, k).proposals]


@pytest.mark.parametrize(
    "text",
    [
        "1. Heat (1995)\n2. Casino (1995)\n3. Babe (1995)",
        "1) Heat (1995)\n2) Casino (1995)\n3) Babe (1995)",
        "(1) Heat (1995)\n(2) Casino (1995)\n(3) Babe (1995)",
        "1 - Heat (1995)\n2 - Casino (1995)\n3 - Babe (1995)",
        "1.Heat (1995)\n2.Casino (1995)\n3.Babe (1995)",
        r"1\. Heat (1995)" + "\n" + r"2\. Casino (1995)" + "\n" + r"3\. Babe (1995)",
        "- Heat (1995)\n- Casino (1995)\n- Babe (1995)",
        "* Heat (1995)\n* Casino (1995)\n* Babe (1995)",
        "• Heat (1995)\n•Casino (1995)\n• Babe (1995)",
        "- 1. Heat (1995)\n- 2. Casino (1995)\n- 3. Babe (1995)",
        "> 1. Heat (1995)\n> 2. Casino (1995)\n> 3. Babe (1995)",
        "Heat (1995)\nCasino (1995)\n\n\nBabe (1995)",
        "1. **Heat** (1995)\n2. **Casino (1995)**\n**3. Babe (1995)**",
        "1. *Heat* (1995)\n2. _Casino_ (1995)\n3. `Babe` (1995)",
        '1. "Heat" (1995)\n2. “Casino” (1995)\n3. «Babe» (1995)',
        "### 1. Heat (1995)\n### 2. Casino (1995)\nA crime film.\n### 3. Babe (1995)",
        "Title: Heat (1995)\n\nTitle: Casino (1995)\n\nTitle: Babe (1995)",
        "1. **Title:** Heat\n **Year:** 1995\n2. Film: Casino\n- Year: 1995\n3. Babe (1995)",
        "Movie: 1. Heat (1995)\nMovie: 2. Casino (1995)\nMovie: 3. Babe (1995)",
        "```\n1. Heat (1995)\n2. Casino (1995)\n3. Babe (1995)\n```",
        "Sure! Three movies:\n\n1. Heat (1995)\n2. Casino (1995)\n3. Babe (1995)\n\nEnjoy!",
        "1. Heat (1995) - A thriller.\n2. Casino (1995): Las Vegas\n3. Babe (1995) A pig (1995).",
        "1. Heat (1995)\n   - A thriller\n2. Casino (1995)\n   - In Las Vegas\n3. Babe (1995)",
        "1. Crime\n- Heat (1995)\n- Casino (1995)\n2. Family\n- Babe (1995)",
        "1. Heat (1995) 2. Casino (1995) 3. Babe (1995)",
        "1. Heat (1995), Casino (1995)\n2. Babe (1995)",
        "Heat (1995), Casino (1995), and Babe (1995)",
        "1. Heat, 1995\n2. Casino - 1995\n3. Babe [1995]",
        "| # | Title | Year |\n|-|:-|-:|\n|1| Heat |1995|\n|2| Casino |1995|\n|3| Babe |1995|",
        "| Title | Year |\n|---|---|\n| Heat | 1995 |\n| Casino | 1995 |\n| **Babe** | 1995 |",
        '["Heat (1995)", "Casino (1995)", "Babe (1995)"]',
        '[{"title":"Heat","year":1995},{"name":"Casino (1995)"},{"movie":"Babe","date":"1995"}]',
        '{"movies": [{"Title": "Heat", "Year": 1995}, "Casino (1995)", "Babe (1995)"], "n": 3}',
        '```json\n{"list": ["Heat (1995)", "Casino (1995)", "Babe (1995)"]}\n```\nEnjoy!',
        '{"1": "Heat (1995)", "2": "Casino (1995)", "3": "Babe (1995)"}',
        '{"title":"Heat (1995)","genres":["Crime"]}\n{"title":"Casino (1995)"}\n["Babe (1995)"]',
        '[\n"Heat (1995)",\n"Casino (1995)",\n"Babe (1995)",\n"Ju',  # cut: read as lines
    ],
)
def test_titles_and_years_are_read_from_every_layout(text: str) -> None:
    assert read_titles(text) == ALL


@pytest.mark.parametrize(
    "text",
    [
        "1. Heat\n2. Casino\n3. Babe",
        "Here you go:\nHeat\nCasino\nBabe",
        '"Heat", "Casino" and "Babe"',
        '- "Heat", "Casino"\n- "Babe"',
        "Heat, Casino, Babe",
        "Heat; Casino; Babe",
        "1. Heat — a thriller\n2. **Casino**: in Las Vegas\n3. “Babe” is about a pig",
        "| Heat |\n| Casino |\n| Babe |",
        '["Heat", "Casino", "Babe"]',
    ],
)
def test_titles_without_years_are_read(text: str) -> None:
    assert read_titles(text) == [("Heat", None), ("Casino", None), ("Babe", None)]


@pytest.mark.parametrize(
    "text",
    [
        "1. Heat (1995)\n2. Casino\n3. Babe (1995)",
        "- Heat (1995)\n- Casino\n- Babe (1995)",
        "Of course!\nHeat (1995)\nCasino\nBabe (1995)\nHave fun!",
        "1. Heat (1995)\n- like Ran (1985)\n- like Ronin (1998)\n2. Casino\n3. Babe (1995)",
    ],
)
def test_missing_year_does_not_lose_a_title(text: str) -> None:
    assert read_titles(text) == [HEAT, ("Casino", None), BABE]


def test_year_in_another_line_does_not_hide_the_list() -> None:
    text = "1. Heat\n   - after a film (1989)\n2. Casino\nEnjoy these films (1995)!"
    assert read_titles(text) == [("Heat", None), ("Casino", None)]


def test_titles_that_begin_with_numbers_are_no_markers() -> None:
    text = (
        "1. 12 Angry Men (1957)\n2. 2001: A Space Odyssey (1968)\n3. (500) Days of Summer (2009)"
        "\n4. 1984 (1984)\n5. 8½ (1963)"
    )
    titles = ["12 Angry Men", "2001: A Space Odyssey", "(500) Days of Summer", "1984", "8½"]
    assert [title for title, _ in read_titles(text)] == titles
    assert read_titles("- (500) Days of Summer (2009)\n- 12 Angry Men (1957)") == [
        ("(500) Days of Summer", 2009),
        ("12 Angry Men", 1957),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "I am sorry, but I cannot recommend movies.",
        "Sorry.\nI do not know this person.\nPlease ask again.",
        "I recommend Heat (1995) and Casino (1995).",
        "What do you like?",
        "{}",
        "[]",
        "[1, 2, 3]",
        "```\n```",
        "No",
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


@pytest.mark.parametrize(
    "unit",
    [
        "-",
        " ",
        "|-",
        "1. ",
        "(1995",
        "[",
        '{"a":',
        '"a',
        "( ",
        "a, ",
        " - ",
        ",  1",
        "**",
        "(x, 1",
        ": []",
        "《a》",
        "① ",
        "1. (",
        "<title>a",
        "a\n",
        "1\n",
        "- 1995\n",
        "a,title\n",
        "**a** ",
        "\n \n",
        "<think>",
    ],
)
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
