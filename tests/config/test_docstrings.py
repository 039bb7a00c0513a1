from __future__ import annotations

from dataclasses import dataclass

from recbias.config.docstrings import arguments, summary
from support import fake_plugins


def test_the_summary_is_the_first_sentence() -> None:
    assert summary(fake_plugins.ML1M) == "Films that people rated."


def test_the_summary_of_a_long_sentence_is_on_one_line() -> None:
    class Long:
        """Average share of items, e.g. films, in the
        lists of users. Another sentence.

        More.
        """

    assert summary(Long) == "Average share of items, e.g. films, in the lists of users."


def test_arguments_may_run_over_several_lines() -> None:
    assert arguments(fake_plugins.ML1M) == {
        "side": "Side tables to read.",
        "bad_lines": "What to do with a line that cannot be read: stop, or skip and count it.",
    }


def test_arguments_end_where_the_next_section_begins() -> None:
    class Sections:
        """One.

        Args:
            a: First, with a list:

                - b: not an argument.
            c (int): Second.

        Raises:
            d: Not an argument.
        """

    assert arguments(Sections) == {
        "a": "First, with a list: - b: not an argument.",
        "c": "Second.",
    }


def test_a_class_without_a_docstring_has_none() -> None:
    @dataclass
    class Bare:
        size: int = 3

    assert (summary(Bare), arguments(Bare)) == ("", {})
