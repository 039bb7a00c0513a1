from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import BadYaml, MissingFile
from recbias.formats.yaml import Document, Mark
from recbias.formats.yaml import MAX_BYTES, dump, read_file, read_text, suggest_file


def read(text: str) -> Document:
    return read_text(text, Mark("s.yaml"))


def read_scalar(text: str) -> Any:
    return read(f"x: {text}").data["x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-5", 1e-5),
        ("1.0e-5", 1e-5),
        ("5E3", 5000.0),
        (".5", 0.5),
        ("3.", 3.0),
        ("-0.25", -0.25),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("+3", 3),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("0b1", "0b1"),
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("null", None),
        ("~", None),
        ("", None),
        ("2001-12-14", "2001-12-14"),
        ("'5'", "5"),
        ("'true'", "true"),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        (".nan", ".nan"),
        ("=", "="),
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

REFUSED = {
    "tag": (
        "a: 1\nb: !!python/object/apply:os.system [ls]\n",
        "2:4: the tag !!python/object/apply:os.system is not allowed",
    ),
    "own tag": ("a: !mine 3\n", "1:4: the tag !mine is not allowed"),
    "binary": ("a: !!binary aGk=\n", "1:4: the tag !!binary is not allowed"),
    "wrong tag": ("a: !!int x\n", "1:4: 'x' is not of its tag, !!int"),
    "tab": ("a:\n\t- b\n", "2:1: a tab where YAML expects spaces"),
    "two documents": ("a: 1\n---\nb: 2\n", "2:1: a second document begins here"),
    "open quote": (
        'a: 1\nb: "x\nc: 2\n',
        "2:4: found unexpected end of stream (while scanning a quoted scalar)",
    ),
    "colon": ("a: b: c\n", "1:5: a colon that YAML does not expect here"),
    "alias of nothing": ("a: *b\n", "1:4: found undefined alias 'b'"),
    "alias in itself": ("a: &a [1, *a]\n", "1:4: an alias occurs inside the value that it names"),
    "bomb": (BOMB, "1:38: more than 100,000 values"),
    "deep": ("a: " + "[" * 5000, "is nested too deeply"),
    "merge key": ("a: &a {b: 1}\nc: {<<: *a}\n", "2:5: merge keys (<<) are not read"),
    "list as key": ("? [1, 2]\n: 3\n", "1:3: a key must be text"),
    "control character": ("a: b\x07\n", "1:5: the character '\\x07' is not allowed in YAML"),
    "many digits": ("a: " + "9" * 5000, "1:4: 99999999999999999999... is too large for a number"),
    "large": ("a: 1e999\n", "1:4: 1e999 is too large for a number"),
    "half a character": ('a: "\\ud800"\n', "1:4: '\\ud800' is half a character"),
}


@pytest.mark.parametrize(("text", "error"), REFUSED.values(), ids=REFUSED)
def test_other_yaml_is_rejected_with_its_position(text: str, error: str) -> None:
    with pytest.raises(BadYaml) as caught:
        read(text)
    message = str(caught.value).removeprefix("s.yaml:").strip()
    assert message == error or (error.startswith("1:38") and message.endswith(error[6:]))


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
        (b"a\n", "s.yaml:1:1: must be a mapping of keys to values"),
        (b"a: 1\nb: \xff\n", "s.yaml:2:4: the byte 0xff is not UTF-8"),
        (b"\xff\xfea\x00", "s.yaml:1:1: the byte 0xff is not UTF-8"),
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
        ("x" * 300, ["no such file"]),
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


def test_a_file_of_a_similar_name_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "clicks.csv").touch()
    assert suggest_file(tmp_path / "click.csv") == "did you mean clicks.csv?"
    assert suggest_file(tmp_path / "zzz") == f"it is looked for at {tmp_path}/zzz"


@given(st.text(max_size=50) | st.text(alphabet="ab:-[]{}&*!|>'\"\n #,%@`?\\0", max_size=40))
def test_any_text_is_read_or_rejected(text: str) -> None:
    with contextlib.suppress(BadYaml):
        assert all(str(mark).startswith("s.yaml:") for mark in read(text).values.values())


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
numberlike = st.from_regex(r"[-+]?[0-9.]{1,4}(e[-+]?[0-9]{1,2})?|0[ox][0-7]{1,3}", fullmatch=True)


@given(st.dictionaries(st.text() | numberlike, plain | numberlike, min_size=1, max_size=5))
def test_dumped_data_is_read_back_unchanged(data: dict[str, Any]) -> None:
    assert read(dump(data)).data == data


def test_ambiguous_text_is_quoted() -> None:
    data = {"a": "1e5", "b": "yes", "c": "0o7", "d": "2001-01-01", "e": "12:30"}
    assert yaml.safe_load(dump(data)) == read(dump(data)).data == data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a: "\\ud83d\\ude00"\nb: "\\U00110000"\n', "f:2:7: an escape names no character"),
        ('a: "\\ud83dx"\n', "f:1:4: 'A?x' is half a character"),
        ("# a\n%TAG !e! x\n---\na: 1\n", "f:2:1: a %TAG line"),
        ("a: '\\ud83d'\nb: [\n", "f:3:1: expected"),
        ('a: "\\ud83d\\ude00"\nb: "' + "x" * 100_000 + '"\n', "f:1:7: half a character"),
    ],
)
def test_escapes_of_half_characters_and_directives(text: str, message: str) -> None:
    with pytest.raises(BadYaml) as caught:
        read_text(text, Mark("f"))
    assert message.replace("A?", "\\ud83d") in str(caught.value)
    assert caught.value.remedy


def test_two_halves_are_one_character_and_a_comment_changes_nothing() -> None:
    assert read_text('a: "\\ud83d\\ude00"\n', Mark("f")).data == {"a": "😀"}
    assert read_text("# \\ud83d\nb:\t1\n", Mark("f")).data == {"b": 1}
