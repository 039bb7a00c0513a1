from __future__ import annotations

import pickle  # noqa: TID251  what a worker process does with an error

import pytest

from recbias.core import errors
from recbias.core.errors import Faults, OutOfRange, RecbiasError, StageError, UserError


def test_an_error_is_printed_as_where_what_and_what_to_do() -> None:
    fault = OutOfRange("must be at least 1", where="a.yaml:3:4: k", remedy="set k: 10")
    assert fault.lines() == ["error: a.yaml:3:4: k: must be at least 1", "help: set k: 10"]


def test_an_error_without_place_or_remedy_is_one_line() -> None:
    assert UserError("no").lines() == ["error: no"]


def test_several_faults_are_printed_in_order() -> None:
    faults = Faults([UserError("first", remedy="a"), UserError("second")])
    assert faults.lines() == ["error: first", "help: a", "error: second"]


def test_faults_of_a_stage_are_not_the_users() -> None:
    assert not issubclass(StageError, UserError)


def test_every_error_is_of_the_tree_and_documented() -> None:
    classes = [each for each in vars(errors).values() if isinstance(each, type)]
    kinds = [each for each in classes if each.__module__ == errors.__name__]
    assert len(kinds) > 20
    for kind in kinds:
        assert issubclass(kind, RecbiasError)
        assert kind.__doc__


@pytest.mark.parametrize("name", ["ConfigError", "DataError", "PluginError", "ReportError"])
def test_what_the_user_can_mend_is_a_user_error(name: str) -> None:
    assert issubclass(vars(errors)[name], UserError)


def test_an_error_keeps_its_parts_on_the_way_from_a_worker_process() -> None:
    sent = OutOfRange("must be at least 1", where="k", remedy="set k: 10")
    come = pickle.loads(pickle.dumps(sent))
    assert come.lines() == sent.lines()
