from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Gt, Interval, Le, MaxLen, MinLen, MultipleOf

from recbias.config.settings import describe_hint
from recbias.core.plugins import InputFile
from support.models.fake_plugins import Endpoint


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (int, "a whole number"),
        (float, "a number"),
        (str, "text"),
        (Path, "a path"),
        (Any, "anything"),
        (InputFile, "a file"),
        (Annotated[int, Ge(1)], "a whole number of at least 1"),
        (Annotated[float, Ge(0), Le(1)], "a number from 0 to 1"),
        (Annotated[float, Interval(gt=0, lt=1)], "a number above 0 and below 1"),
        (Annotated[int, MultipleOf(5)], "a whole number a multiple of 5"),
        (Annotated[int, Gt(0)] | None, "a whole number above 0 or nothing (null)"),
        (Literal["a", "b"], "one of a, b"),
        (Literal[True], "true"),
        (Literal["a"] | Annotated[int, Gt(0)], "a or a whole number above 0"),
        (tuple[int, ...], "a list of whole numbers"),
        (list[Any], "a list"),
        (frozenset[Literal["a", "b"]], "a list (each one of a, b)"),
        (tuple[int, str], "a list of 2: a whole number, text"),
        (
            Annotated[list[int], MinLen(2), MaxLen(3)],
            "a list of whole numbers with a length of at least 2 and with a length of at most 3",
        ),
        (Mapping[str, Any], "a mapping"),
        (Endpoint, "a mapping with provider, temperature, model"),
    ],
)
def test_type_and_range_are_described(hint: Any, words: str) -> None:
    assert describe_hint(hint) == words
