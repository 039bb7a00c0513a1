from __future__ import annotations

from dataclasses import dataclass

from recbias.config.declarations.docstrings import read_arguments, read_summary
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
