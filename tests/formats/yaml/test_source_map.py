from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import ConfigError, Faults, OutOfRange, UnknownKey
from recbias.formats.yaml.source_map import Document, Mark, key_path


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
    ("place", "shown"),
    [
        ((), ""),
        (("k",), "k"),
        (("dataset", "filters", 0, "k"), "dataset.filters[0].k"),
        (("models", 1, "tune", "space", "a", "log", 0), "models[1].tune.space.a.log[0]"),
    ],
)
def test_a_place_is_shown_with_positions_in_brackets(
    place: tuple[str | int, ...], shown: str
) -> None:
    assert key_path(place) == shown


def test_a_mark_is_of_the_value_or_of_the_key() -> None:
    assert str(document().mark(("k",))) == "s.yaml:1:4"
    assert str(document().mark(("k",), key=True)) == "s.yaml:1:1"


def test_what_has_no_mark_stands_where_its_surroundings_stand() -> None:
    mark = document().mark(("models", 0, "neighbors"))
    assert (str(mark), mark.folder) == ("s.yaml:2:10", Path("sub"))
    assert str(document().mark(("nowhere", 3))) == "s.yaml:1:1"


def test_a_document_without_marks_has_blank_ones_in_its_folder() -> None:
    mark = Document({}, base=Path("here")).mark(("k",))
    assert (str(mark), mark.folder) == ("", Path("here"))
    assert str(Document({}).error(("k",), "is odd")) == "k: is odd"
    assert str(Document({}).error((), "is odd")) == "is odd"


def test_an_override_has_no_lines() -> None:
    mark = Mark("--set k=3", lined=False)
    assert str(mark.at(3, 4)) == "--set k=3"
    assert str(Mark("s.yaml").at(3, 4)) == "s.yaml:4:5"


def test_faults_are_raised_at_once_in_the_order_of_their_places() -> None:
    made = document()
    made.blame(("models", 0), "second", kind=UnknownKey)
    made.blame(("k",), "first", remedy="do x", kind=OutOfRange)
    with pytest.raises(Faults) as caught:
        made.refuse()
    assert caught.value.lines() == [
        "error: s.yaml:1:4: k: first",
        "help: do x",
        "error: s.yaml:2:10: models[0]: second",
    ]
    assert [type(each) for each in caught.value.faults] == [OutOfRange, UnknownKey]


def test_no_fault_is_no_error() -> None:
    document().refuse()


def test_an_error_from_below_is_carried_to_the_place_that_led_there() -> None:
    made = document()
    below = [OutOfRange("too much", where="elsewhere", remedy="less"), ConfigError("odd")]
    made.carry(("k",), Faults(below))
    assert [each.lines() for _, each in made.faults] == [
        ["error: s.yaml:1:4: k: too much", "help: less"],
        ["error: s.yaml:1:4: k: odd"],
    ]
