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
