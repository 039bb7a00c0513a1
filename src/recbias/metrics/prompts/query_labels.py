"""The labels and templates of queries, with errors that name the setting at fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.errors import NothingLeft, UserError
from recbias.core.outputs.evidence import Evidence
from recbias.core.queries.groups import Groups, group_by
from recbias.core.stage_context import warn
from recbias.metrics.prompts.filled_words import NEUTRAL, TEMPLATE, encode_column


@contextmanager
def locate_errors(setting: str) -> Iterator[None]:
    """Set the location of errors of the user's input to a setting of the metric."""
    try:
        yield
    except UserError as error:
        error.where = setting
        raise


def group_queries(evidence: Evidence, label: str) -> Groups:
    """Return the groups of the queries by a label of at least two values.

    Raises:
        UnknownColumn: No query carries the label; ``where`` is ``label``.
        NothingLeft: Every cell is missing, or the label has one value only.
    """
    with locate_errors("label"):
        groups = group_by(evidence.queries.labels, label)
        if len(groups.names) < 2:
            message = f"the label {label!r} has one value only, {groups.names[0]}"
            raise NothingLeft(message, remedy="choose a label with at least two values")
    return groups


def warn_unlabelled(evidence: Evidence, label: str, n: int) -> None:
    """Warn that ``n`` queries are excluded, since they do not carry the label."""
    if n:
        warn(f"{evidence.metric}: {n:,} queries carry no {label} and are excluded")


def encode_templates(evidence: Evidence) -> AnyArray:
    """Return the template of each query, ``int[q]`` from 0; -1 if it is missing."""
    return encode_column(evidence.queries.labels, TEMPLATE)


def mark_neutral(evidence: Evidence) -> BoolArray:
    """Return which queries are of a template without a word, ``bool[q]``."""
    labels = evidence.queries.labels
    if NEUTRAL not in labels.names:
        return np.zeros(len(labels.frame), dtype=bool)
    return np.asarray(labels.column(NEUTRAL) == 1)
