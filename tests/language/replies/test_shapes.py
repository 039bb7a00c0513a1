"""The shapes of replies in ``shapes.yaml``: text in, items of the catalogue out."""

from __future__ import annotations

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
SHAPES = [
    shape if isinstance(shape, dict) else {"reply": shape}
    for shapes in TABLE["shapes"].values()
    for shape in shapes
]
SIGNS = {Reason.UNKNOWN: "?", Reason.FORMAT: "-"}


def read(reply: ChatReply, k: int) -> list[str] | str:
    if reply.outcome != "complete":
        return {"length": "unfinished"}.get(reply.outcome, reply.outcome)
    outcomes = resolve_replies([parsed := parse_reply(reply.answer, k)], k, CATALOGUE)
    rows = zip(outcomes.items[0].tolist(), outcomes.reasons[0].tolist(), strict=True)
    ranks = [NAMES[item] if item >= 0 else SIGNS.get(Reason(reason), "") for item, reason in rows]
    return ranks[: len(parsed.proposals)]


@pytest.mark.parametrize("shape", SHAPES, ids=range(len(SHAPES)))
def test_a_shape_is_read_as_it_is_meant(shape: dict[str, Any]) -> None:
    expected = shape.get("read", ["Heat", "Fargo", "Alien"])
    assert read(ChatReply(text=shape["reply"]), shape.get("k", 3)) == expected
