from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from recbias.core.errors import BadYaml, MalformedLine, MissingFile, UserError
from recbias.formats.yaml.marked_text import MOST_BYTES, Marked, read_marked


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_scalars_are_text_as_written_and_know_their_line(tmp_path: Path) -> None:
    tree = read_marked(put(tmp_path / "a.yaml", "words:\n  - No\n  - 007\n  - fiancée\nempty:\n"))
    words = tree.mapping("the file")["words"].entries("words")
    assert [each.text("a word") for each in words] == ["No", "007", "fiancée"]
    assert words[1].where == f"{tmp_path / 'a.yaml'}:3"
    assert tree.mapping("the file")["empty"].value == ""


def test_json_is_the_same_tree_without_lines(tmp_path: Path) -> None:
    tree = read_marked(put(tmp_path / "a.json", '{"a": ["x", 1, null], "b": {"c": "d"}}'))
    assert [each.value for each in tree.mapping("it")["a"].entries("a")] == ["x", "1", ""]
    assert tree.mapping("it")["b"].mapping("b")["c"] == Marked("d", str(tmp_path / "a.json"))


@pytest.mark.parametrize(
    ("name", "text", "kind", "said"),
    [
        ("a.yaml", "a: [1\nb: 2\n", BadYaml, "a.yaml:2"),
        ("a.yaml", "a: 1\nb: 2\na: 3\n", BadYaml, "a.yaml:3: the key 'a' is written twice"),
        ("a.yaml", "? [a, b]\n: c\n", BadYaml, "a.yaml:1: a key must be text"),
        ("a.yaml", "", BadYaml, "a.yaml: the file is empty"),
        ("a.yaml", "a: \x00\n", BadYaml, "a.yaml: is not YAML"),
        ("a.yaml", "a: &a [*a]\n", BadYaml, "a.yaml: is nested too deeply"),
        ("a.json", '{"a": 1,\n "b" 2}', MalformedLine, "a.json:2: is not JSON"),
        ("a.json", "[" * 100_000, MalformedLine, "a.json: is nested too deeply"),
        ("a.json", " " * (MOST_BYTES + 1), MalformedLine, "is longer than 4,194,304 bytes"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_line(
    tmp_path: Path, name: str, text: str, kind: type[UserError], said: str
) -> None:
    with pytest.raises(kind) as caught:
        read_marked(put(tmp_path / name, text))
    assert said in str(caught.value)


def test_bytes_that_are_no_utf8_are_refused_at_their_line(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: b\nc: fianc\xe9e\n")
    with pytest.raises(MalformedLine, match=r"a.yaml:2: the byte 0xe9 is not UTF-8"):
        read_marked(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="no such file"):
        read_marked(tmp_path / "no.yaml")


TEXT, LISTED = Marked("a", "f:1"), Marked((), "f:2")


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (partial(TEXT.entries, "words"), "f:1: words must be a list"),
        (partial(TEXT.mapping, "it"), "f:1: it must be a mapping"),
        (partial(LISTED.text, "a word"), "f:2: a word must be text"),
        (partial(Marked(" ", "f:3").text, "a word"), "f:3: a word must be text"),
    ],
)
def test_a_value_of_another_shape_is_refused_at_its_line(
    read: Callable[[], object], said: str
) -> None:
    with pytest.raises(MalformedLine) as caught:
        read()
    assert str(caught.value) == said


def test_an_unknown_key_names_the_nearest() -> None:
    tree = Marked({"wrods": Marked("a", "f:4")}, "f:1")
    with pytest.raises(MalformedLine, match="f:4: the file has no key 'wrods'") as caught:
        tree.mapping("the file", ("words", "templates"))
    assert caught.value.remedy == "did you mean words?"
