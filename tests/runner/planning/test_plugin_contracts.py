from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias import api
from recbias.core.errors import UserError
from recbias.registry import REGISTRIES
from recbias.runner.planning.plugin_contracts import FORMS, PROTOCOLS, promised
from support.specs import make_small_spec

MODEL = '''
import sys
from dataclasses import dataclass
from typing import ClassVar

from recbias.models.neighbours.knn import ItemKNN

{top}

@dataclass(frozen=True, kw_only=True)
class Odd:
    """A model that breaks its promises."""

    provides: ClassVar[frozenset] = frozenset({{"lists"}})
    needs: ClassVar[frozenset] = frozenset({{"train"}})
    libraries: ClassVar[tuple] = ()
    size: int = 1

    def fit(self, data, rng):
        return ItemKNN().fit(data, rng)

    {method}

{end}
'''

METRIC = '''
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class Odd:
    """A metric that breaks its promises."""

    needs: ClassVar[frozenset] = frozenset({"lists"})
    direction: ClassVar[str] = "higher"
    unit: ClassVar[str] = ""

    def measure(self, evidence):
        return None
'''


def odd_spec(folder: Path, *, top: str = "", method: str = "", end: str = "") -> dict[str, Any]:
    (folder / "odd.py").write_text(MODEL.format(top=top, method=method, end=end))
    return make_small_spec(models=["MostPop", f"{folder}/odd.py:Odd"])


def said(spec: dict[str, Any], folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        api.plan(spec, out=folder / "out")
    return "\n".join(caught.value.lines())


@pytest.mark.parametrize("name", ["provides", "needs", "libraries"])
def test_a_model_that_lacks_what_every_model_has_is_refused(tmp_path: Path, name: str) -> None:
    lines = said(odd_spec(tmp_path, end=f"del Odd.{name}"), tmp_path)
    assert f"models[1]: {tmp_path}/odd.py:Odd has no {name}" in lines
    assert f"help: give its class {name}: " in lines


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("provides", "['lists']"),
        ("provides", "frozenset({1})"),
        ("needs", "None"),
        ("needs", "'train'"),
        ("libraries", "'torch'"),
    ],
)
def test_what_has_another_form_is_refused(tmp_path: Path, name: str, value: str) -> None:
    lines = said(odd_spec(tmp_path, end=f"Odd.{name} = {value}"), tmp_path)
    assert f"models[1]: {name} of {tmp_path}/odd.py:Odd must be " in lines


@pytest.mark.parametrize("name", ["needs", "direction", "unit"])
@pytest.mark.parametrize("end", ["del Odd.{}", "Odd.{} = 0.5"])
def test_a_metric_must_say_what_reports_say_of_it(tmp_path: Path, name: str, end: str) -> None:
    (tmp_path / "odd.py").write_text(METRIC + end.format(name))
    assert name in said(make_small_spec(metrics=[f"{tmp_path}/odd.py:Odd"]), tmp_path)


@pytest.mark.parametrize(
    "method",
    [
        "def needs_now(self): raise SystemExit(0)",
        "def needs_now(self): assert not self",
        "def needs_now(self): return None",
        "def model_files(self): raise KeyError('x')",
        "def __post_init__(self): assert not self",
        "def __post_init__(self): sys.exit(0)",
        "other: object = object()",
    ],
)
def test_code_that_fails_while_a_run_is_planned_is_an_error_of_its_user(
    tmp_path: Path, method: str
) -> None:
    lines = said(odd_spec(tmp_path, method=method), tmp_path)
    assert lines.startswith("error: models[1]: ")
    assert "Odd" in lines
    assert "help: " in lines


@pytest.mark.parametrize("top", ["assert not sys", "sys.exit(0)", "raise StopIteration"])
def test_code_that_fails_while_it_is_imported_is_an_error_of_its_user(
    tmp_path: Path, top: str
) -> None:
    lines = said(odd_spec(tmp_path, top=top), tmp_path)
    assert "odd.py cannot be imported: " in lines


def test_a_dataset_whose_files_are_asked_in_vain_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(
        "from recbias.data.datasets.demo import Demo\n"
        "class Odd(Demo):\n"
        "    def files(self, data):\n"
        "        raise SystemExit(0)\n"
    )
    spec = make_small_spec(dataset=f"{tmp_path}/odd.py:Odd")
    assert "files() of" in said(spec, tmp_path)


STORED = """def restore(self, state): return self

    def fit(self, data, rng): return self

    def state(self): return {state}
"""


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("None", "gives NoneType, not named arrays"),
        ("{{1: [1.0]}}", "has an array under 1, which is no text"),
        ("{{'a': [None]}}", "has Python objects under 'a', no numbers"),
        ("{{'file': [1.0]}}", "multiple values for argument 'file'"),
        ("sys.exit(0)", "SystemExit: 0"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_state_that_cannot_be_stored_is_the_failure_of_its_own_model(
    tmp_path: Path, state: str, message: str, workers: int
) -> None:
    method = STORED.replace("{state}", state.format())
    run = recbias.run(odd_spec(tmp_path, method=method), out=tmp_path / "out", workers=workers)
    assert message in run.failures[0]["message"]
    assert set(run.metrics["model"]) == {"MostPop"}


@pytest.mark.parametrize("answer", ["None", "[1, 2]", "sys.exit(0)"])
def test_answers_that_cannot_be_stored_are_the_failure_of_their_own_metric(
    tmp_path: Path, answer: str
) -> None:
    (tmp_path / "odd.py").write_text(
        "import sys\n" + METRIC.replace("return None", f"return {answer}")
    )
    spec = make_small_spec(metrics=["nDCG", f"{tmp_path}/odd.py:Odd"])
    run = recbias.run(spec, out=tmp_path / "out")
    assert run.failures
    assert set(run.metrics["metric"]) == {"nDCG"}


NAMES = [
    (kind, name)
    for kind, registry in REGISTRIES.items()
    if kind in PROTOCOLS
    for name in registry.table
]


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_what_comes_with_the_package_keeps_its_promises(kind: str, name: str) -> None:
    plugin = REGISTRIES[kind].load(name)
    known = {each.name for each in fields(plugin)}
    for fact in promised(PROTOCOLS[kind]):
        assert fact in known or hasattr(plugin, fact), fact
        if fact in FORMS and fact in vars(plugin) and fact not in known:
            value = vars(plugin)[fact]
            assert isinstance(value, property) or FORMS[fact][0](value), fact
