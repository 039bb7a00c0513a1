from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from recbias.core.errors import BadYaml, Faults, MalformedLine, MissingFile, UserError
from recbias.formats.yaml import MAX_BYTES, MarkedValue, read_marked


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_scalars_are_text_as_written_with_their_line(tmp_path: Path) -> None:
    tree = read_marked(
        write(tmp_path / "a.yaml", "words:\n  - No\n  - 007\n  - fiancée\nempty:\n")
    )
    words = tree.mapping("the file")["words"].entries("words")
    assert [word.text("a word") for word in words] == ["No", "007", "fiancée"]
    assert words[1].where == f"{tmp_path / 'a.yaml'}:3"
    assert tree.mapping("the file")["empty"].value == ""


def test_json_has_the_same_values_without_lines(tmp_path: Path) -> None:
    tree = read_marked(write(tmp_path / "a.json", '{"a": ["x", 1, null], "b": {"c": "d"}}'))
    assert [entry.value for entry in tree.mapping("it")["a"].entries("a")] == ["x", "1", ""]
    assert tree.mapping("it")["b"].mapping("b")["c"] == MarkedValue("d", str(tmp_path / "a.json"))


@pytest.mark.parametrize(
    ("name", "text", "kind", "message"),
    [
        ("a.yaml", "a: [1\nb: 2\n", BadYaml, "a.yaml:2"),
        ("a.yaml", "a: 1\nb: 2\na: 3\n", Faults, "a.yaml:3:1: a: is written twice"),
        ("a.yaml", "? [a, b]\n: c\n", BadYaml, "a.yaml:1:3: a key must be text"),
        ("a.yaml", "", BadYaml, "a.yaml: the file is empty"),
        ("a.yaml", "a: \x00\n", BadYaml, "a.yaml:1:4: the character"),
        (
            "a.yaml",
            "a: &a [*a]\n",
            BadYaml,
            "a.yaml:1:4: an alias occurs inside the value that it names",
        ),
        ("a.json", '{"a": 1,\n "b" 2}', MalformedLine, "a.json:2: is not JSON"),
        ("a.json", "[" * 100_000, MalformedLine, "a.json:1: is not JSON: it is nested too deeply"),
        ("a.json", " " * (MAX_BYTES + 1), BadYaml, "is longer than 4,194,304 bytes"),
    ],
)
def test_invalid_files_are_rejected_with_their_line(
    tmp_path: Path, name: str, text: str, kind: type[UserError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        read_marked(write(tmp_path / name, text))
    assert message in str(caught.value)


def test_bytes_that_are_not_utf_8_are_rejected_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: b\nc: fianc\xe9e\n")
    with pytest.raises(BadYaml, match=r"a.yaml:2:9: the byte 0xe9 is not UTF-8"):
        read_marked(path)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="no such file"):
        read_marked(tmp_path / "no.yaml")


TEXT, LISTED = MarkedValue("a", "f:1"), MarkedValue((), "f:2")


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (partial(TEXT.entries, "words"), "f:1: words must be a list"),
        (partial(TEXT.mapping, "it"), "f:1: it must be a mapping"),
        (partial(LISTED.text, "a word"), "f:2: a word must be text"),
        (partial(MarkedValue(" ", "f:3").text, "a word"), "f:3: a word must be text"),
    ],
)
def test_a_value_of_another_type_is_rejected_with_its_line(
    access: Callable[[], object], message: str
) -> None:
    with pytest.raises(MalformedLine) as caught:
        access()
    assert str(caught.value) == message


def test_the_nearest_valid_key_is_suggested() -> None:
    tree = MarkedValue({"wrods": MarkedValue("a", "f:4")}, "f:1")
    with pytest.raises(MalformedLine, match="f:4: the file has no key 'wrods'") as caught:
        tree.mapping("the file", ("words", "templates"))
    assert caught.value.remedy == "did you mean words?"
