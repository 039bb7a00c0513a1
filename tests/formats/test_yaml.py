from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import (
    BadYaml,
    ConfigError,
    Faults,
    MalformedLine,
    MissingFile,
    OutOfRange,
    UnknownKey,
    UserError,
)
from recbias.formats.yaml import (
    MAX_BYTES,
    MAX_TEXT_BYTES,
    Document,
    Mark,
    MarkedValue,
    dump,
    read_file,
    read_marked,
    read_text,
)


def read(text: str) -> Document:
    return read_text(text, Mark("s.yaml"))


def read_scalar(text: str) -> Any:
    return read(f"x: {text}").data["x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-5", 1e-5),
        ("5E3", 5000.0),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("true", True),
        ("yes", "yes"),
        ("no", "no"),
        ("null", None),
        ("", None),
        ("2001-12-14", "2001-12-14"),
        ("'5'", "5"),
        (".inf", math.inf),
        (".nan", ".nan"),
        ("[1, a, {b: 2.5}]", [1, "a", {"b": 2.5}]),
        ("age < 18 and gender == 'F'", "age < 18 and gender == 'F'"),
        ("!!str 5", "5"),
        ("émoji 🎬", "émoji 🎬"),
    ],
)
def test_scalars_are_those_of_yaml_one_point_two(text: str, expected: object) -> None:
    scalar = read_scalar(text)
    assert scalar == expected
    assert type(scalar) is type(expected)


def test_keys_are_text_as_written() -> None:
    assert read("{1: a, yes: b, null: c, 1.50: d}").data == {
        "1": "a",
        "yes": "b",
        "null": "c",
        "1.50": "d",
    }


def test_every_key_and_value_has_a_mark() -> None:
    spec = read("name: x\nmodels:\n  - A\n  - name: B\n    size: [1, 2]\n")
    marks = {key: str(mark).removeprefix("s.yaml:") for key, mark in spec.values.items()}
    assert marks == {
        (): "1:1",
        ("name",): "1:7",
        ("models",): "3:3",
        ("models", 0): "3:5",
        ("models", 1): "4:5",
        ("models", 1, "name"): "4:11",
        ("models", 1, "size"): "5:11",
        ("models", 1, "size", 0): "5:12",
        ("models", 1, "size", 1): "5:15",
    }
    assert str(spec.keys["models", 1, "size"]) == "s.yaml:5:5"


def test_aliases_are_resolved() -> None:
    assert read("a: &x [1, 2]\nb: *x\n").data == {"a": [1, 2], "b": [1, 2]}


def test_a_repeated_key_is_an_error_with_both_lines() -> None:
    spec = read("a: {b: 1, b: 2}\nc: 3\nc: 4\n")
    assert spec.data == {"a": {"b": 1}, "c": 3}
    assert [str(error) for _, error in spec.faults] == [
        "s.yaml:1:11: a.b: is written twice, first in line 1",
        "s.yaml:3:1: c: is written twice, first in line 2",
    ]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{above}'] * 10)}]\n"
    for above, name in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: !!binary aGk=\n", "s.yaml:1:4: the tag !!binary is not allowed"),
        (BOMB, "s.yaml:1:[0-9]+: more than 100,000 values"),
        ("a: " + "[" * 5000, "s.yaml: is nested too deeply"),
        ("a: b\x07\n", r"s.yaml:1:5: the character '\\x07' is not allowed in YAML"),
        ("a: " + "9" * 5000, "s.yaml:1:4: 99999999999999999999 is too large for a number"),
    ],
)
def test_other_yaml_is_rejected_with_its_position(text: str, error: str) -> None:
    with pytest.raises(BadYaml, match=error):
        read(text)


def test_a_file_is_read_with_marks(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_bytes("\ufeffname: é\r\nk: 3\r\n".encode())
    spec = read_file(tmp_path / "s.yaml")
    assert spec.data == {"name": "é", "k": 3}
    assert spec.base == tmp_path
    assert str(spec.values[("k",)]) == f"{tmp_path}/s.yaml:2:4"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "s.yaml: the file is empty"),
        (b"# only a comment\n", "s.yaml: the file is empty"),
        (b"- a\n", "s.yaml:1:1: must be a mapping of keys to values"),
        (b"a: 1\nb: \xff\n", "s.yaml:2:4: the byte 0xff is not UTF-8"),
        (b"a" * (MAX_BYTES + 1), "s.yaml: is longer than 1,048,576 bytes"),
    ],
)
def test_other_files_are_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_bytes(content)
    with pytest.raises(BadYaml) as caught:
        read_file(Path("s.yaml"))
    assert str(caught.value).startswith(error)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("quikstart.yaml", ["no such file", "did you mean quickstart.yaml?"]),
        ("none/x.yaml", ["no such file", "there is no folder none"]),
        ("folder", ["no such file", "it is a folder: name a file in it"]),
        ("a\0b", ["no such file"]),
    ],
)
def test_a_missing_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, lines: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("quickstart.yaml").write_text("a: 1\n")
    Path("folder").mkdir()
    with pytest.raises(MissingFile) as caught:
        read_file(Path(name))
    assert caught.value.message == lines[0]
    assert caught.value.remedy == lines[1] if lines[1:] else caught.value.remedy
    assert caught.value.where == name


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
numberlike = st.from_regex(r"[-+]?[0-9.]{1,4}(e[-+]?[0-9]{1,2})?|0[ox][0-7]{1,3}", fullmatch=True)


@given(st.dictionaries(st.text() | numberlike, plain | numberlike, min_size=1, max_size=5))
def test_dumped_data_is_read_back_unchanged(data: dict[str, Any]) -> None:
    assert read(dump(data)).data == data


def document() -> Document:
    return Document(
        {"k": 0, "models": ["A"]},
        keys={("k",): Mark("s.yaml", 1, 1), ("models",): Mark("s.yaml", 2, 1)},
        values={
            (): Mark("s.yaml", 1, 1),
            ("k",): Mark("s.yaml", 1, 4),
            ("models",): Mark("s.yaml", 2, 9),
            ("models", 0): Mark("s.yaml", 2, 10, folder=Path("sub")),
        },
    )


def test_a_value_without_mark_has_that_of_the_enclosing_value() -> None:
    mark = document().mark(("models", 0, "neighbors"))
    assert (str(mark), mark.folder) == ("s.yaml:2:10", Path("sub"))
    assert str(document().mark(("nowhere", 3))) == "s.yaml:1:1"


def test_a_document_without_marks_has_blank_ones_in_its_folder() -> None:
    mark = Document({}, base=Path("here")).mark(("k",))
    assert (str(mark), mark.folder) == ("", Path("here"))
    assert str(Document({}).error(("k",), "is odd")) == "k: is odd"
    assert str(Document({}).error((), "is odd")) == "is odd"


def test_all_errors_are_raised_at_once_in_file_order() -> None:
    spec = document()
    spec.add_fault(("models", 0), "second", kind=UnknownKey)
    spec.add_fault(("k",), "first", remedy="do x", kind=OutOfRange)
    with pytest.raises(Faults) as caught:
        spec.refuse()
    assert caught.value.lines() == [
        "error: s.yaml:1:4: k: first",
        "help: do x",
        "error: s.yaml:2:10: models[0]: second",
    ]
    assert [type(fault) for fault in caught.value.faults] == [OutOfRange, UnknownKey]


def test_an_error_raised_elsewhere_gets_the_mark_of_its_cause() -> None:
    spec = document()
    errors = [OutOfRange("too much", where="elsewhere", remedy="less"), ConfigError("odd")]
    spec.add_error(("k",), Faults(errors))
    assert [error.lines() for _, error in spec.faults] == [
        ["error: s.yaml:1:4: k: too much", "help: less"],
        ["error: s.yaml:1:4: k: odd"],
    ]


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
        ("a.json", " " * (MAX_TEXT_BYTES + 1), BadYaml, "is longer than 4,194,304 bytes"),
    ],
)
def test_invalid_files_are_rejected_with_their_line(
    tmp_path: Path, name: str, text: str, kind: type[UserError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        read_marked(write(tmp_path / name, text))
    assert message in str(caught.value)


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
