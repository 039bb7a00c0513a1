from __future__ import annotations

import inspect

from recbias.core.docstrings import InheritsSections


class Family(InheritsSections):
    """Base of a family.

    Args:
        label: A label.
        k: The number of ranks that are evaluated;
            by default all.

    Raises:
        UnknownColumn: No such label.

    Source:
        A thesis.
    """


class Share(Family):
    """The share of a label.

        a / b

    Args:
        k: Another cutoff.
        share: A share.

    >>> 1 + 1
    2

    Range:
        0 to 1.
    """


class Bare(Family):
    """A metric that documents its source only.

    Source:
        A paper.
    """


def test_a_class_gets_the_entries_and_sections_that_it_lacks() -> None:
    assert inspect.getdoc(Share) == inspect.cleandoc(
        """The share of a label.

            a / b

        >>> 1 + 1
        2

        Args:
            label: A label.
            k: Another cutoff.
            share: A share.

        Raises:
            UnknownColumn: No such label.

        Range:
            0 to 1.

        Source:
            A thesis.
        """
    )


def test_own_sections_replace_inherited_ones() -> None:
    doc = inspect.getdoc(Bare) or ""
    assert "A paper." in doc
    assert "A thesis." not in doc
    assert "        by default all." in doc


def test_the_base_class_keeps_its_docstring() -> None:
    assert inspect.getdoc(Family) == inspect.cleandoc(Family.__doc__ or "")
    assert (inspect.getdoc(Family) or "").startswith("Base of a family.\n\nArgs:\n    label: A")
