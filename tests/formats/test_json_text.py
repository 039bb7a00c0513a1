from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import MalformedLine
from recbias.formats.json_files import locate_value, parse_json, read_pairs

PATH = Path("a.json")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('{"a":\n1,}', 2, "is not JSON"),
        ("\n" + "[" * 5000, 2, "too deeply"),
        ('["[[",\n' + "9" * 5000 + "]", 2, "more than 4,300 digits"),
        ('["\\\\ud800",\n"\\ud800"]', 2, "half a character"),
    ],
)
def test_invalid_json_is_rejected_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(MalformedLine, match=message) as caught:
        parse_json(text, PATH, line=7)
    assert caught.value.where == f"{PATH}:{line + 6}"


def test_repeated_keys_and_surrogate_pairs_are_kept() -> None:
    assert parse_json('{"a": "\\ud83d\\ude00", "a": [1]}', PATH, pairs=tuple) == (
        ("a", "😀"),
        ("a", [1]),
    )


def test_pairs_are_those_of_an_object(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"q": {"i": 1}, "q": [2]}', encoding="utf-8")
    assert read_pairs(path, "{query: ...}") == (("q", (("i", 1),)), ("q", [2]))
    path.write_text("[1]", encoding="utf-8")
    with pytest.raises(MalformedLine, match=r"is not an object of the form \{query") as caught:
        read_pairs(path, "{query: ...}")
    assert caught.value.where == f"{path}:1"


@pytest.mark.parametrize(
    ("text", "number", "depth", "key", "line"),
    [
        ('{"q: {": {"i\\"": 1, "j":\n2},\n"1": {"1": 3}}', 2, 2, True, 3),
        ('{"q: {": {"i\\"": 1, "j":\n2},\n"1": {"1": 3}}', 1, 1, True, 3),
        ('{"q":\n["x", "y:",\n"z"], "r": [\n7]}', 3, 2, False, 4),
        ("{}", 5, 1, True, 1),
    ],
)
def test_keys_and_values_are_located_by_depth(
    tmp_path: Path, text: str, number: int, depth: int, key: bool, line: int
) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    assert locate_value(path, number, depth=depth, key=key) == f"{path}:{line}"
