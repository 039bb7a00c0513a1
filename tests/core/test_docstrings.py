from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recbias.core.docstrings import (
    read_arguments,
    read_docstring,
    read_formula,
    read_summary,
)
from recbias.registry import REGISTRIES
from support.models import fake_plugins


def test_summary_is_the_first_sentence() -> None:
    assert read_summary(fake_plugins.ML1M) == "Films that people rated."
    assert read_summary(fake_plugins.ItemKNN) == "Recommend items like the user's."


def test_summary_of_a_long_sentence_is_on_one_line() -> None:
    class Long:
        """Average share of items, e.g. films, in the
        lists of users. Another sentence.

        More.
        """

    assert read_summary(Long) == "Average share of items, e.g. films, in the lists of users."


def test_argument_of_two_lines_is_joined() -> None:
    assert read_arguments(fake_plugins.ML1M) == {
        "side": "Side tables to read.",
        "bad_lines": "What to do with a line that cannot be read: stop, or skip and count it.",
    }


def test_arguments_end_at_the_next_section() -> None:
    class Sections:
        """One.

        Args:
            a: First, with a list:

                - b: not an argument.
            c (int): Second.

        Raises:
            d: Not an argument.
        """

    assert read_arguments(Sections) == {
        "a": "First, with a list: - b: not an argument.",
        "c": "Second.",
    }


def test_class_without_a_docstring_has_no_summary_and_arguments() -> None:
    @dataclass
    class Bare:
        size: int = 3

    assert (read_summary(Bare), read_arguments(Bare)) == ("", {})


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
