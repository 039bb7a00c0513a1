from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from recbias.cli.output import describe_errors, open_document, render_document
from recbias.core.errors import (
    BadYaml,
    Faults,
    MissingFile,
    MissingRun,
    RecbiasError,
    StageError,
    UnknownName,
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


@pytest.mark.parametrize(
    ("error", "place"),
    [
        (UnknownName("m", where="a b.yaml:3:8: models[1]"), ("models[1]", "a b.yaml", 3, 8)),
        (BadYaml("m", where="spec.yaml:3:8"), (None, "spec.yaml", 3, 8)),
        (MissingFile("m", where="data/x.csv:17"), (None, "data/x.csv", 17, None)),
        (MissingFile("m", where="x.csv"), (None, "x.csv", None, None)),
        (MissingRun("m", where="results/one"), (None, "results/one", None, None)),
        (UnknownName("m", where="--format"), ("--format", None, None, None)),
        (
            UnknownName("m", where="--set a=b.yaml:1:2: a"),
            ("--set a=b.yaml:1:2: a",) + (None,) * 3,
        ),
        (MissingFile("m", where="https://x.org/a.zip"), ("https://x.org/a.zip",) + (None,) * 3),
        (MissingFile("m", where="encoder"), ("encoder", None, None, None)),
        (RecbiasError("m"), (None, None, None, None)),
    ],
)
def test_errors_have_their_place(error: RecbiasError, place: tuple[object, ...]) -> None:
    (row,) = describe_errors(error)
    assert tuple(row[name] for name in ("where", "file", "line", "column")) == place
    assert (row["message"], row["help"]) == ("m", error.remedy or None)


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


def test_a_failed_stage_is_in_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    end_document(StageError("fit failed", traceback="T"))
    assert [*read_document(capsys)] == ["errors"]


def test_exit_prints_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    end_document(typer.Exit(3))
    assert read_document(capsys) == {"name": "a"}


def test_interrupt_prints_no_part_of_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    end_document(KeyboardInterrupt())
    assert capsys.readouterr().out == ""


def test_nothing_is_printed_unless_a_document_is_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with open_document(is_wanted=False) as document:
        document["name"] = "a"
        print("text")
    assert capsys.readouterr() == ("text\n", "")


NOISY = """
import os, subprocess, sys
from recbias.cli.output import open_document
with open_document(is_wanted=True) as document:
    print("from Python")
    os.write(1, b"from a library\\n")
    subprocess.run(["echo", "from a process"], check=True)
    document["name"] = "a"
"""


def test_other_output_goes_to_stderr(tmp_path: Path) -> None:
    script = tmp_path / "noisy.py"
    script.write_text(NOISY, encoding="utf-8")
    result = subprocess.run([sys.executable, script], capture_output=True, text=True)
    noise = ["from Python", "from a library", "from a process"]
    assert sorted(result.stderr.splitlines()) == noise
    assert json.loads(result.stdout) == {"schema_version": 1, "name": "a"}
