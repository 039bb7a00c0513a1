"""The types of the public names, which mypy reads here and checks with ``make check``."""

from __future__ import annotations

import inspect
from importlib.resources import files
from pathlib import Path
from typing import assert_type, get_type_hints

import pandas as pd
import pytest

import recbias
from recbias.core.errors import MissingRun
from support.specs import make_small_spec


def test_results_have_their_types(tmp_path: Path) -> None:
    run = recbias.run(make_small_spec(), out=tmp_path, progress=False)
    assert_type(run, recbias.Run)
    assert_type(run.folder, Path)
    tables = (run.metrics, run.significance, run.summary)
    assert_type(tables, tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame])
    assert_type(run.per_unit, pd.DataFrame | None)
    assert_type(run.lists, pd.DataFrame | None)
    assert_type((run.failures, run.checks), tuple[pd.DataFrame, pd.DataFrame])
    assert_type(run.report(), Path)
    assert_type(recbias.load(run.folder), recbias.Run)
    frames = (
        recbias.plan(make_small_spec(), out=tmp_path),
        recbias.list_runs(tmp_path),
        recbias.power(run),
    )
    assert_type(frames, tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame])
    assert all(isinstance(frame, pd.DataFrame) for frame in (*tables, *frames))
    with pytest.raises(MissingRun):
        assert_type(recbias.compare("a", "b", out=tmp_path), pd.DataFrame)


def test_the_package_says_that_it_has_types() -> None:
    assert files("recbias").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", [name for name in recbias.__all__ if name != "__version__"])
def test_every_public_function_has_types_and_a_docstring_with_an_example(name: str) -> None:
    public = getattr(recbias, name)
    local = {"Run": recbias.Run}  # imported by `recbias.api` for type checkers only
    hints = get_type_hints(public.__init__ if inspect.isclass(public) else public, localns=local)
    assert set(hints) >= set(inspect.signature(public).parameters)
    assert "return" in hints or inspect.isclass(public)
    assert "Example:" in (inspect.getdoc(public) or "")
