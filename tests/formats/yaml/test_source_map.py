from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import ConfigError, Faults, OutOfRange, UnknownKey
from recbias.formats.yaml import Document, Mark, format_key_path


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


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("k",), "k"),
        (("dataset", "filters", 0, "k"), "dataset.filters[0].k"),
        (("models", 1, "tune", "space", "a", "log", 0), "models[1].tune.space.a.log[0]"),
    ],
)
def test_key_paths_show_positions_in_brackets(path: tuple[str | int, ...], text: str) -> None:
    assert format_key_path(path) == text


def test_values_and_keys_have_their_own_marks() -> None:
    assert str(document().mark(("k",))) == "s.yaml:1:4"
    assert str(document().mark(("k",), key=True)) == "s.yaml:1:1"


def test_a_value_without_mark_has_that_of_the_enclosing_value() -> None:
    mark = document().mark(("models", 0, "neighbors"))
    assert (str(mark), mark.folder) == ("s.yaml:2:10", Path("sub"))
    assert str(document().mark(("nowhere", 3))) == "s.yaml:1:1"


def test_a_document_without_marks_has_blank_ones_in_its_folder() -> None:
    mark = Document({}, base=Path("here")).mark(("k",))
    assert (str(mark), mark.folder) == ("", Path("here"))
    assert str(Document({}).error(("k",), "is odd")) == "k: is odd"
    assert str(Document({}).error((), "is odd")) == "is odd"


def test_the_mark_of_an_override_has_no_line() -> None:
    mark = Mark("--set k=3", lined=False)
    assert str(mark.at(3, 4)) == "--set k=3"
    assert str(Mark("s.yaml").at(3, 4)) == "s.yaml:4:5"


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


def test_a_document_without_errors_raises_nothing() -> None:
    document().refuse()


def test_an_error_raised_elsewhere_gets_the_mark_of_its_cause() -> None:
    spec = document()
    errors = [OutOfRange("too much", where="elsewhere", remedy="less"), ConfigError("odd")]
    spec.add_error(("k",), Faults(errors))
    assert [error.lines() for _, error in spec.faults] == [
        ["error: s.yaml:1:4: k: too much", "help: less"],
        ["error: s.yaml:1:4: k: odd"],
    ]
