from __future__ import annotations

from pathlib import Path

import pytest

import recbias
from recbias.core.errors import UserError
from recbias.registry import REGISTRIES
from recbias.runner.planning.plugin_declarations import NAMES
from support.commands import SMALL, run_recbias, write_small_spec
from support.specs import make_small_spec

METRIC = '''\
from recbias.plugin import Evidence, Measurement, dataclass, np


@dataclass{decorator}
class Mine:
    """One for each list."""

    needs, direction, unit = frozenset({{{need!r}}}), "none", "query"
    {field}

    def measure(self, evidence: Evidence) -> list[Measurement]:
        return [evidence.measure_queries(np.ones(len(evidence.queries)))]
'''


def write_metric(
    folder: Path, *, decorator: str = "(frozen=True)", need: str = "lists", field: str = ""
) -> str:
    path = folder / "mine.py"
    path.write_text(METRIC.format(decorator=decorator, need=need, field=field))
    return f"{path}:Mine"


@pytest.mark.parametrize(
    ("changes", "message", "remedy"),
    [
        ({"decorator": ""}, "Mine is not frozen", "@dataclass(frozen=True, kw_only=True)"),
        ({"need": "list"}, "Mine names 'list', which is not one of", "did you mean lists?"),
        ({"field": "a: int = 'x'"}, "the default of a of", "correct the default"),
        ({"field": "a: int = None"}, "must be a whole number, found nothing", "correct"),
        ({"field": "a: np.ndarray = None"}, "cannot be that of a setting", "use numbers"),
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


def test_a_metric_without_a_formula_is_a_warning_of_plan_and_of_run(tmp_path: Path) -> None:
    write_metric(tmp_path)
    write_small_spec(tmp_path, SMALL.replace("[nDCG, HR, ItemCoverage]", "['./mine.py:Mine']"))
    warning = "mine.py:4: ./mine.py:Mine has no formula, so reports show none"
    plan = run_recbias("plan", "small.yaml", folder=tmp_path)
    run = run_recbias("run", "small.yaml", folder=tmp_path)
    for result in (plan, run):
        assert result.code == 0
        assert result.err.count(f"warning: {warning}") == 1
    (recorded,) = recbias.load("small", tmp_path / "results").manifest["warnings"]
    assert recorded.startswith(warning)


@pytest.mark.parametrize(("kind", "member"), NAMES)
def test_built_in_plugins_declare_names_that_exist(kind: str, member: str) -> None:
    for name in REGISTRIES[kind].table:
        declared = getattr(REGISTRIES[kind].load(name), member)
        if isinstance(declared, frozenset):
            assert declared <= NAMES[kind, member], name
