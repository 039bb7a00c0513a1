"""Plug-ins of an installed package, found by their entry points."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import recbias
from recbias.core.errors import UserError
from recbias.registry import REGISTRIES
from support.commands import run_recbias
from support.specs import make_small_spec

METRICS = '''\
from recbias.plugin import Evidence, Measurement, dataclass, np

from their_package.sums import add_up


@dataclass(frozen=True, kw_only=True)
class Whole:
    """The number of recommended items.

        whole = |list|
    """

    needs, direction, unit = frozenset({"lists"}), "none", "query"

    def measure(self, evidence: Evidence) -> list[Measurement]:
        return [evidence.measure_queries(add_up(evidence.ranked.filled))]


@dataclass(frozen=True, kw_only=True)
class Failing(Whole):
    """Fails in a module of the package."""

    def measure(self, evidence: Evidence) -> list[Measurement]:
        return [evidence.measure_queries(add_up(None))]


@dataclass(frozen=True, kw_only=True)
class Needless(Whole):
    """Needs what there is not."""

    needs = frozenset({"list"})
'''

SUMS = "def add_up(filled):\n    return filled.sum(axis=1).astype('float64')\n"

ENTRY_POINTS = """\
[recbias.metrics]
Whole = their_package.metrics:Whole
Failing = their_package.metrics:Failing
Needless = their_package.metrics:Needless
Broken = their_package.broken:Broken
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages as pip leaves it, on the path of this process."""
    package, info = tmp_path / "their_package", tmp_path / "their_package-1.0.dist-info"
    for path in (package, info):
        path.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (package / "__init__.py").write_text("")
    (package / "metrics.py").write_text(METRICS)
    (package / "sums.py").write_text(SUMS)
    (package / "broken.py").write_text("import math\n\nmath.nothing\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("their_package")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_shows_the_line_of_the_package(folder: Path, workers: int) -> None:
    metrics = ["their-package/Whole", "their-package/Failing"]
    spec = make_small_spec(models=["MostPop"], metrics=metrics)
    run = recbias.run(spec, out=folder / "out", workers=workers)
    assert set(run.metrics["metric"]) == {"their-package/Whole"}
    assert set(run.metrics["value"]) == {5.0}
    (failure,) = run.failures.to_dict("records")
    assert "'NoneType' object has no attribute 'sum'" in failure["message"]
    assert "(sums.py:2: return filled.sum(axis=1).astype('float64'))" in failure["message"]


def test_an_object_of_the_package_has_its_registered_name(folder: Path) -> None:
    whole = REGISTRIES["metrics"].load("their-package/Whole")
    run = recbias.run(make_small_spec(metrics=[whole()]), out=folder / "out")
    assert set(run.metrics["metric"]) == {"their-package/Whole"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Needless", "metrics.py:27: needs of their-package/Needless names 'list'"),
        ("Broken", "module 'math' has no attribute 'nothing' (broken.py:3: math.nothing)"),
    ],
)
def test_a_fault_is_reported_at_its_line_before_the_run(
    folder: Path, name: str, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        recbias.plan(make_small_spec(metrics=[f"their-package/{name}"]), out=folder / "out")
    assert message in "\n".join(caught.value.lines())


def test_list_describes_the_plugins_of_the_package(folder: Path) -> None:
    result = run_recbias("list", "metrics", folder=folder, env={"PYTHONPATH": _join(folder)})
    assert result.code == 0
    assert "their-package/Whole" in result.out
    assert "The number of recommended items." in result.out
    assert "their-package/Broken cannot be imported" in result.out


def _join(folder: Path) -> str:
    source = Path(recbias.__file__).parents[1]
    return f"{folder}:{source}"
