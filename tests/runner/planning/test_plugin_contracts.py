from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias import api
from recbias.core.errors import UserError
from recbias.registry import REGISTRIES
from recbias.runner.stage_planner import (
    MEMBER_TYPES,
    PROTOCOLS,
    has_member_type,
    list_promised_members,
)
from support.specs import make_small_spec

MODEL = '''
import sys
from dataclasses import dataclass
from typing import ClassVar

from recbias.models.knn import ItemKNN

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


def make_spec(folder: Path, *, top: str = "", method: str = "", end: str = "") -> dict[str, Any]:
    (folder / "odd.py").write_text(MODEL.format(top=top, method=method, end=end))
    return make_small_spec(models=["MostPop", f"{folder}/odd.py:Odd"])


def plan_and_collect_lines(spec: dict[str, Any], folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        api.plan(spec, out=folder / "out")
    return "\n".join(caught.value.lines())


@pytest.mark.parametrize("name", ["provides", "needs", "libraries"])
def test_a_model_that_lacks_a_member_is_refused(tmp_path: Path, name: str) -> None:
    lines = plan_and_collect_lines(make_spec(tmp_path, end=f"del Odd.{name}"), tmp_path)
    assert f": {tmp_path}/odd.py:Odd has no {name}" in lines
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
def test_a_member_of_another_type_is_refused(tmp_path: Path, name: str, value: str) -> None:
    lines = plan_and_collect_lines(make_spec(tmp_path, end=f"Odd.{name} = {value}"), tmp_path)
    assert f": {name} of {tmp_path}/odd.py:Odd must be " in lines


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
def test_plugin_code_that_fails_during_planning_is_a_user_error(
    tmp_path: Path, method: str
) -> None:
    lines = plan_and_collect_lines(make_spec(tmp_path, method=method), tmp_path)
    assert lines.startswith("error: models[1]: ")
    assert "Odd" in lines
    assert "help: " in lines


STORED = """def restore(self, state): return self

    def fit(self, data, rng): return self

    def state(self): return {state}
"""


STATES = {
    "None": "returns NoneType, not a dict of arrays",
    "{{1: [1.0]}}": "has a name that is not text: 1",
    "{{'a': [None]}}": "has Python objects in 'a'",
    "{{'file': [1.0]}}": "multiple values for argument 'file'",
    "sys.exit(0)": "SystemExit: 0",
}
"""States that cannot be stored, with what is said of each."""


def test_a_state_that_cannot_be_stored_fails_its_model_only(tmp_path: Path) -> None:
    models: list[str | dict[str, str]] = ["MostPop"]
    for number, state in enumerate(STATES):
        method = STORED.replace("{state}", state.format())
        path = tmp_path / f"odd_{number}.py"
        path.write_text(MODEL.format(top="", method=method, end=""))
        models.append({"name": f"{path}:Odd", "label": state})
    run = recbias.run(make_small_spec(models=models), out=tmp_path / "out", workers=2)
    messages = {failure["stage"]: failure["message"] for failure in run.failures}
    assert messages.keys() == {f"fit {state}" for state in STATES}
    for state, message in STATES.items():
        assert message in messages[f"fit {state}"]
    assert set(run.metrics["model"]) == {"MostPop"}


@pytest.mark.parametrize("answer", ["None", "[1, 2]", "sys.exit(0)"])
def test_measurements_that_cannot_be_stored_fail_their_metric_only(
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
def test_built_in_plugins_have_the_members_of_their_protocol(kind: str, name: str) -> None:
    plugin = REGISTRIES[kind].load(name)
    settings = {field.name for field in fields(plugin)}
    for member in list_promised_members(PROTOCOLS[kind]):
        assert member in settings or hasattr(plugin, member), member
        if member in MEMBER_TYPES and member in vars(plugin) and member not in settings:
            value = vars(plugin)[member]
            assert isinstance(value, property) or has_member_type(member, value), member


@pytest.mark.parametrize(
    ("method", "message", "remedy"),
    [
        ("fit = None", "has no method fit(data, rng)", "def fit(self, data, rng)"),
        (
            "def fit(self, data): pass",
            "fit of {name} cannot be called as fit(data, rng): too many positional arguments",
            "write it as def fit(self, data, rng)",
        ),
        (
            "def fit(self, data, rng, epochs): pass",
            "cannot be called as fit(data, rng): missing a required argument: 'epochs'",
            "write it as def fit(self, data, rng)",
        ),
    ],
)
def test_a_method_that_cannot_be_called_is_refused_at_its_line(
    tmp_path: Path, method: str, message: str, remedy: str
) -> None:
    spec = make_spec(tmp_path, method=method)
    lines = plan_and_collect_lines(spec, tmp_path)
    assert message.format(name=f"{tmp_path}/odd.py:Odd") in lines
    assert remedy in lines
    assert f"models[1]: odd.py:{22 if 'def' in method else 10}: " in lines
