from __future__ import annotations

from pathlib import Path

from recbias.core.docstrings import (
    read_docstring,
    read_formula,
    read_summary,
)
from recbias.registry import REGISTRIES
from support.models import fake_plugins


def test_summary_is_the_first_sentence() -> None:
    assert read_summary(fake_plugins.ML1M) == "Films that people rated."
    assert read_summary(fake_plugins.ItemKNN) == "Recommend items like the user's."


BRIEF = '''
class Brief:
    """The share of things.

        share = x / y
        x = 1
    """

class Heir(Brief):
    size = "no docstring"

class Prose:
    """The share of things.

    It says x = y.
    """
'''


def test_a_formula_may_be_all_that_follows_the_summary(tmp_path: Path) -> None:
    (tmp_path / "brief.py").write_text(BRIEF, encoding="utf-8")
    brief, heir, prose = (
        REGISTRIES["metrics"].load(f"./brief.py:{name}", base=tmp_path)
        for name in ("Brief", "Heir", "Prose")
    )
    assert read_formula(brief) == "share = x / y\nx = 1"
    assert read_docstring(brief).startswith("The share of things.\n\n    share = x / y")
    assert read_summary(heir) == "The share of things."
    assert read_formula(prose) == ""


def test_a_docstring_without_source_is_read_as_it_is() -> None:
    dynamic = type("Dynamic", (), {"__doc__": "The share.\n\n    x = y"})
    assert (read_summary(dynamic), read_formula(dynamic)) == ("The share.", "")
