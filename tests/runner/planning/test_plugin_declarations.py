from __future__ import annotations

from pathlib import Path

import pytest

import recbias
from recbias.core.errors import UserError
from recbias.core.plugins import NAMES
from recbias.registry import REGISTRIES
from support.commands import SMALL, invoke_recbias, write_small_spec
from support.specs import make_small_spec

METRIC = '''\
from recbias.plugin import Evidence, Measurement, dataclass, np


@dataclass{decorator}
class Mine:
    """One for each list."""

    needs, direction, unit = frozenset({{{need!r}}}), {direction}, {unit!r}

    def measure(self, evidence: Evidence) -> list[Measurement]:
        return [evidence.measure_queries(np.ones(len(evidence.queries)))]
'''


def write_metric(
    folder: Path,
    *,
    decorator: str = "(frozen=True)",
    need: str = "lists",
    direction: str = "'none'",
    unit: str = "query",
) -> str:
    path = folder / "mine.py"
    settings = {
        "decorator": decorator,
        "need": need,
        "direction": direction,
        "unit": unit,
    }
    path.write_text(METRIC.format(**settings))
    return f"{path}:Mine"


@pytest.mark.parametrize(
    ("changes", "message", "remedy"),
    [
        ({"decorator": ""}, "Mine is not frozen", "@dataclass(frozen=True, kw_only=True)"),
        ({"need": "list"}, "Mine names 'list', which is not one of", "did you mean lists?"),
        (
            {"direction": "'up'"},
            "higher, lower, zero, none, found the text 'up'",
            "direction: one",
        ),
    ],
)
def test_a_faulty_declaration_is_refused_at_its_class(
    tmp_path: Path, changes: dict[str, str], message: str, remedy: str
) -> None:
    spec = make_small_spec(metrics=[write_metric(tmp_path, **changes)])
    with pytest.raises(UserError) as caught:
        recbias.plan(spec, out=tmp_path)
    (error, help_) = caught.value.lines()
    assert error.startswith("error: metrics[0]: mine.py:4: ")
    assert message in error
    assert remedy in help_
    output = invoke_recbias("show", "./mine.py:Mine", folder=tmp_path)
    assert output.code == 2
    assert message in output.err


@pytest.mark.parametrize(("kind", "member"), NAMES)
def test_built_in_plugins_declare_names_that_exist(kind: str, member: str) -> None:
    for name in REGISTRIES[kind].table:
        declared = getattr(REGISTRIES[kind].load(name), member)
        if isinstance(declared, frozenset):
            assert declared <= NAMES[kind, member], name


FAILING = """\
from recbias.plugin import Evidence, Measurement, dataclass


@dataclass(frozen=True)
class Mine:
    needs, direction, unit = frozenset({"lists"}), "none", "query"

    def measure(self, evidence: Evidence) -> list[Measurement]:
        raise ValueError("no such thing")
"""


def test_the_failure_of_a_metric_is_shown_once_with_the_stages_that_it_stops(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text(FAILING, encoding="utf-8")
    metrics = "[nDCG, {name: ./mine.py:Mine, by: gender}]"
    spec = SMALL.replace("[nDCG, HR, ItemCoverage]", metrics)
    checks = "checks: [{metric: Mine, by: gender, at_least: 0}, {metric: nDCG, at_least: 0}]\n"
    write_small_spec(tmp_path, spec + checks)
    failed = invoke_recbias("run", "small.yaml", folder=tmp_path)
    assert failed.code == 1
    progress, colon, summary = failed.err.rpartition("failed: ")
    assert colon
    assert progress.count("no such thing") == 1 + 1  # the message, and the line of the code
    assert summary.count("ValueError: no such thing") == 1
    run = recbias.load("small", tmp_path / "results")
    n_models = len(run.metrics["model"].unique())
    assert f"; {n_models - 1} more stage" in summary
    assert f"; {4 * n_models} stages were skipped because of it" in summary
    report = (run.folder / "report.md").read_text(encoding="utf-8")
    assert report.count("ValueError: no such thing") == 1
    assert len(run.failures) == 5 * n_models
    assert "failed in the same way" in run._repr_html_()
    document = (run.folder / "checks.xml").read_text(encoding="utf-8")
    n_judged = sum(not model["is_baseline"] for model in run.manifest["models"])
    assert f'failures="0" errors="{n_judged}" skipped="0"' in document
    assert document.count("<error ") == n_judged
