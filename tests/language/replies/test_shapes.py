"""The shapes of replies in ``shapes.yaml``: text in, items of the catalogue out."""

from __future__ import annotations

import html
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml

from recbias.language.answers import parse_reply
from recbias.language.endpoints import ChatReply
from recbias.language.replies import Reason, resolve_replies
from recbias.language.titles import index_titles, split_year

TABLE = yaml.safe_load((Path(__file__).parent / "shapes.yaml").read_text(encoding="utf-8"))
NAMES = [split_year(title)[0] for title in TABLE["catalogue"]]
CATALOGUE = index_titles(TABLE["catalogue"])
THREE = ["Heat", "Fargo", "Alien"]
SHAPES = [
    shape if isinstance(shape, dict) else {"reply": shape}
    for shapes in TABLE["shapes"].values()
    for shape in shapes
]
SIGNS = {Reason.UNKNOWN: "?", Reason.FORMAT: "-"}
OUTCOMES = {"length": "unfinished", "empty": "empty"}


def read(reply: ChatReply, k: int) -> list[str] | str:
    if reply.outcome != "complete":
        return OUTCOMES[reply.outcome]
    parsed = parse_reply(reply.answer, k, CATALOGUE.holds)
    outcomes = resolve_replies([parsed], k, CATALOGUE)
    ranks = zip(outcomes.items[0].tolist(), outcomes.reasons[0].tolist(), strict=True)
    names = [NAMES[item] if item >= 0 else SIGNS.get(Reason(reason)) for item, reason in ranks]
    return [str(name) for name in names[: len(parsed.proposals)]]


@pytest.mark.parametrize("shape", SHAPES, ids=range(len(SHAPES)))
def test_a_shape_is_read_as_it_is_meant(shape: dict[str, Any]) -> None:
    expected = shape.get("read", THREE)
    assert read(ChatReply(text=shape["reply"]), shape.get("k", 3)) == expected


def find_names(text: str) -> list[str]:
    """Return the names of the catalogue in the order in which they first occur in a text.

    This second reader knows nothing of lists, JSON or tables. The longest name at a place counts.
    """
    plain = unicodedata.normalize("NFKC", html.unescape(text)).casefold().replace("’", "'")
    places: dict[int, str] = {}
    for name in sorted(NAMES, key=len, reverse=True):
        shown = f"the {name[:-5]}" if name.endswith(", The") else name
        pattern = rf"(?<!\w){re.escape(unicodedata.normalize('NFKC', shown).casefold())}(?!\w)"
        for match in re.finditer(pattern, plain):
            is_free = not any(
                start <= match.start() < start + len(places[start]) for start in places
            )
            if is_free:
                places[match.start()] = name
    return list(dict.fromkeys(places[start] for start in sorted(places)))


def test_another_reader_agrees_on_replies_that_name_nothing_else() -> None:
    compared = 0
    for shape in SHAPES:
        expected = shape.get("read", THREE)
        named = find_names(shape["reply"])
        is_ordered = not shape["reply"].startswith(("3. ", '[{"rank": 2'))
        if sorted(named) == sorted(expected) and is_ordered:
            compared += 1
            assert read(ChatReply(text=shape["reply"]), shape.get("k", 3)) == named
    assert compared >= 50


@pytest.mark.parametrize(
    "line", ["{rank}. {title}", "- {title}", "| {rank} | {title} |", "{rank}: **{name}** ({year})"]
)
def test_titles_of_movielens_are_read_back_from_lists(real_data: Path, line: str) -> None:
    rows = (real_data / "ml-1m" / "movies.dat").read_text(encoding="latin-1").splitlines()
    titles = [html.unescape(row.split("::")[1]) for row in rows]
    pairs = [split_year(title) for title in titles]
    for start in range(0, len(titles), 10):
        shown = zip(titles[start : start + 10], pairs[start : start + 10], strict=True)
        reply = "\n".join(
            line.format(rank=rank, title=title, name=name, year=year)
            for rank, (title, (name, year)) in enumerate(shown, 1)
        )
        read_back = [(found.title, found.year) for found in parse_reply(reply, 10).proposals]
        assert read_back == pairs[start : start + 10]
