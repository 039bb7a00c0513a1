"""Limits of the size of a YAML document, which hold while it is parsed."""

from __future__ import annotations

from typing import Any

import yaml

MAX_DEPTH = 100
"""The largest depth of mappings and lists inside each other."""


class TooManyValues(Exception):
    """A document has more values than its reader accepts.

    Args:
        node: The mapping or list that the first value too many is in.
    """

    def __init__(self, node: yaml.Node) -> None:
        super().__init__()
        self.node = node


class LimitedLoader:
    """A part of PyYAML's loaders, which announce each key and value before they read it.

    libyaml has no limit of depth itself, and would use up the stack of the process.
    """

    depth = 0
    values_left = 0
    """How many values may still come; an alias and a key are none."""

    def descend_resolver(self, current_node: yaml.Node | None, current_index: Any) -> None:
        """Count a value, or a key, whose index is None.

        Raises:
            RecursionError: It is nested too deeply.
            TooManyValues: There are more than ``values_left``.
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise RecursionError
        if current_node is None or current_index is None:
            return
        self.values_left -= 1
        if self.values_left < 0:
            raise TooManyValues(current_node)

    def ascend_resolver(self) -> None:
        """Leave a key or value."""
        self.depth -= 1
