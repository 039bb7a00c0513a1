from __future__ import annotations

import json

import pytest

from recbias.cli.output import open_document, render_document
from recbias.core.errors import (
    BadYaml,
    Faults,
)


@pytest.mark.parametrize(
    "text", ["é", "\x7f", "\x9b2J", "\u202e", "\u2028", "\ud800", "😀", 'a"b\\n\n', "\x1b[2J"]
)
def test_document_is_ascii_without_control_characters(text: str) -> None:
    rendered = render_document({"runs": [{"name": text}], text: text})
    assert rendered.isascii()
    assert all(line.isprintable() for line in rendered.split("\n"))
    assert json.loads(rendered) == {"runs": [{"name": text}], text: text}


def test_document_has_a_line_for_each_row_and_no_undefined_number() -> None:
    content = {"kinds": {"a": [{"x": float("nan")}, {"x": float("inf")}], "b": []}, "n": {"x": 1}}
    rendered = render_document(content)
    assert rendered.splitlines()[2:5] == ['"a": [', '{"x": null},', '{"x": null}']
    assert json.loads(rendered) == {"kinds": {"a": [{"x": None}] * 2, "b": []}, "n": {"x": 1}}


def end_document(error: BaseException) -> None:
    """Raise an error after something was added to a document, and require that it arrives."""
    manager = open_document(is_wanted=True)
    manager.__enter__()["name"] = "a"
    assert not manager.__exit__(type(error), error, None)


def read_document(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    assert document.pop("schema_version") == 1
    return document


def test_every_fault_is_in_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    end_document(Faults([BadYaml("x"), BadYaml("y")]))
    errors = read_document(capsys)
    assert [*errors] == ["errors"]
    assert [row["message"] for row in errors["errors"]] == ["x", "y"]  # type: ignore[attr-defined]


def test_nothing_is_printed_unless_a_document_is_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with open_document(is_wanted=False) as document:
        document["name"] = "a"
        print("text")
    assert capsys.readouterr() == ("text\n", "")
