"""The commands with the core packages only: every package of an extra is absent."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import recbias
from recbias.core.errors import UserError
from recbias.core.packages import EXTRAS, find_extras, list_libraries
from recbias.registry import REGISTRIES
from support.commands import CommandResult, run_recbias
from support.specs import make_small_spec

ABSENT = sorted(
    {package.replace("-", "_") for packages in EXTRAS.values() for package in packages}
)


HIDE = f"""
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide())
from recbias.__main__ import main
main()
"""


def run_core(*words: object, folder: Path) -> CommandResult:
    """Run ``recbias`` in a process in which no package of an extra can be imported."""
    command = [sys.executable, "-c", HIDE, *map(str, words)]
    process = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ}
    )
    return CommandResult(process.returncode, process.stdout, process.stderr)


def test_the_specs_for_a_start_need_the_core_only(tmp_path: Path) -> None:
    for spec in ("quickstart", "audit", "prompts", "vectors", "demo-bias"):
        finished = run_core("run", spec, "--quiet", folder=tmp_path)
        assert finished.code == 0, finished.err
        assert finished.out.count("report.html") == 1


@pytest.mark.parametrize("kind", ["models", "detectors"])
def test_lists_name_the_extra_of_each_plugin(kind: str, tmp_path: Path) -> None:
    listed = run_core("list", kind, folder=tmp_path)
    assert listed.code == 0
    lines = {line.split()[0]: line for line in listed.out.splitlines()[2:]}
    for name in REGISTRIES[kind].table:
        extras = find_extras(list_libraries(REGISTRIES[kind].load(name)))
        assert not extras or lines[name].endswith(f" {','.join(extras)}")
        assert "not installed" not in lines[name]


def test_a_plugin_is_shown_with_its_extra(tmp_path: Path) -> None:
    output = run_core("show", "lenskit/ItemKNN", folder=tmp_path)
    assert output.code == 0
    assert "Extra: libraries; in the clone: pip install '.[libraries]'" in output.out


SPEC = """\
name: everything
dataset: {name: demo, n_users: 80, n_items: 60}
split: {name: random, test: 0.2, validation: 0.2}
models:
  - MostPop
  - MultiVAE
  - BPR-MF
  - implicit/ALS
  - lenskit/ItemKNN
  - {name: ItemKNN, tune: {metric: nDCG, trials: 2, space: {neighbors: {int: [1, 5]}}}}
  - {name: responses, path: responses.jsonl}
metrics: [nDCG, BLEU, ROUGE-L]
"""


def test_every_missing_extra_is_reported_once_with_its_models_and_first_line(
    tmp_path: Path,
) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "responses.jsonl").touch()
    for command in ("plan", "run"):
        refused = run_core(command, "spec.yaml", folder=tmp_path)
        assert refused.code == 2
        errors = [line for line in refused.err.splitlines() if line.startswith("error: ")]
        helps = [line for line in refused.err.splitlines() if line.startswith("help: ")]
        assert [error.split(":")[2] for error in errors] == ["6", "8", "12", "10", "11"]
        extras = ["torch", "libraries", "text", "tune"]
        assert helps[:4] == [f"help: in the clone: pip install '.[{extra}]'" for extra in extras]
        assert "MultiVAE and BPR-MF need the package 'torch'" in errors[0]
        assert "implicit/ALS and lenskit/ItemKNN need the packages" in errors[1]
        assert "BLEU and ROUGE-L need" in errors[2]
        assert "a search needs the package 'optuna'" in errors[3]
        assert "responses.jsonl" in errors[4]  # it is empty
        assert not (tmp_path / "results").exists()


def test_ray_is_refused_with_its_extra(tmp_path: Path) -> None:
    refused = run_core("run", "quickstart", "--executor", "ray", folder=tmp_path)
    assert refused.code == 2
    assert "help: in the clone: pip install '.[ray]'" in refused.err


ROOT = Path(__file__).parents[2]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Return the wheel of the project, built from a copy."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    process = subprocess.run([*command, folder, folder], capture_output=True, text=True)
    if process.returncode and "setuptools" in process.stderr:
        pytest.skip("no index with setuptools")
    assert process.returncode == 0, process.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_every_spec_with_its_tables(wheel: zipfile.ZipFile) -> None:
    packed = {
        name.removeprefix("recbias/configs/"): wheel.read(name)
        for name in wheel.namelist()
        if name.startswith("recbias/configs/")
    }
    configs = ROOT / "configs"
    files = [path for path in configs.rglob("*") if path.is_file()]
    assert packed == {path.relative_to(configs).as_posix(): path.read_bytes() for path in files}


def test_the_description_is_the_readme_with_addresses(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith("dist-info/METADATA")]
    metadata = wheel.read(name).decode()
    assert (ROOT / "README.md").read_text(encoding="utf-8").strip() in metadata
    assert f"Project-URL: Source, {PROJECT['urls']['Source']}" in metadata
    assert f"\nVersion: {recbias.__version__}\n" in metadata
    assert "Description-Content-Type: text/markdown" in metadata


def test_the_citation_is_valid_and_has_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    required = {"cff-version", "message", "title", "authors", "type", "version", "license"}
    assert required <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == recbias.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Source"]
    assert all({"name", "family-names"} & set(author) for author in citation["authors"])


def test_the_version_stands_in_one_place() -> None:
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT


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
