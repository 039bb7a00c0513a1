from __future__ import annotations

import pickle  # noqa: TID251  worker processes pickle their errors

import pytest

from recbias.core import errors
from recbias.core.errors import Faults, OutOfRange, RecbiasError, StageError, UserError


def test_an_error_is_printed_as_location_message_and_remedy() -> None:
    error = OutOfRange("must be at least 1", where="a.yaml:3:4: k", remedy="set k: 10")
    assert error.lines() == ["error: a.yaml:3:4: k: must be at least 1", "help: set k: 10"]


def test_an_error_without_location_and_remedy_is_one_line() -> None:
    assert UserError("no").lines() == ["error: no"]


def test_several_errors_are_printed_in_order() -> None:
    faults = Faults([UserError("no file", remedy="a"), UserError("no key")])
    assert faults.lines() == ["error: no file", "help: a", "error: no key"]


def test_errors_are_moved_to_a_setting_with_their_place_in_the_message() -> None:
    fault = OutOfRange("is 0", where="a.yaml:3", remedy="write 1")
    moved = fault.locate_at("words")
    assert isinstance(moved, OutOfRange)
    assert moved.lines() == ["error: words: a.yaml:3: is 0", "help: write 1"]
    several = Faults([fault, UserError("b.yaml: no key")]).locate_at("words")
    assert several.lines() == [*moved.lines(), "error: words: b.yaml: no key"]


def test_of_many_errors_the_first_are_printed_and_the_others_counted() -> None:
    inner = [UserError(f"fault {n}") for n in range(10_000)]
    faults = Faults([Faults(inner), inner[0], UserError("last")])
    assert len(faults.faults) == 10_001
    lines = faults.lines()
    assert lines[:2] == ["error: fault 0", "error: fault 1"]
    assert lines[24:] == [
        "error: fault 24",
        "error: 9,976 more errors of this kind or others",
        "help: correct these first; --json lists all of them",
    ]


def test_an_error_of_a_stage_is_not_an_error_of_the_user() -> None:
    assert not issubclass(StageError, UserError)


def test_every_error_has_the_base_class_and_a_docstring() -> None:
    values = vars(errors).values()
    of_module = [each for each in values if getattr(each, "__module__", "") == errors.__name__]
    classes = [each for each in of_module if isinstance(each, type)]
    assert len(classes) > 20
    for cls in classes:
        assert issubclass(cls, RecbiasError)
        assert cls.__doc__


@pytest.mark.parametrize("name", ["ConfigError", "DataError", "PluginError", "ReportError"])
def test_errors_that_the_user_can_correct_are_user_errors(name: str) -> None:
    assert issubclass(vars(errors)[name], UserError)


def test_an_error_of_a_worker_process_keeps_its_lines() -> None:
    error = OutOfRange("must be at least 1", where="k", remedy="set k: 10")
    assert pickle.loads(pickle.dumps(error)).lines() == error.lines()


def test_a_notebook_shows_the_lines_of_an_error_of_the_user_in_place_of_the_traceback() -> None:
    faults = Faults([UserError("no file", remedy="name one"), UserError("no key")])
    render = faults._render_traceback_  # the hook of IPython
    assert render() == ["error: no file", "help: name one", "error: no key"]
    assert not hasattr(StageError("a bug"), "_render_traceback_")
