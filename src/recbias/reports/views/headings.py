"""Readable headings of metrics; the files keep the names of the spec."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TITLE = re.compile(r"(?P<name>[^()@]+)\((?P<settings>.*)\)(?P<cutoff>@\d+)?", re.DOTALL)
_LABELLED_GAP = re.compile(r"(?P<label>.*), gap=(?P<gap>\w+)(, min_group=\d+)?(?P<cutoff>@\d+)?")
_GAPS = {
    "difference": "gap by",
    "ratio": "ratio of groups by",
    "std": "standard deviation of groups by",
    "ugf": "UGF by",
    "mad": "mean absolute difference of groups by",
    "cross_entropy": "generalised cross entropy of groups by",
    "atkinson": "Atkinson index between groups by",
    "atkinson_within": "Atkinson index within groups by",
    "atkinson_total": "Atkinson index within and between groups by",
    "worst": "worst group by",
    "worst_quarter": "worst quarter of groups by",
}
_GROUPING = frozenset({"by", "gap", "min_group", "reference_group"})
_OPENING, _CLOSING = "([{", ")]}"


def make_heading(title: str, by: str = "") -> str:
    """Return a readable heading of a metric; a label without settings stays as it is.

    Args:
        title: The name or label of the metric, with its cutoff.
        by: The grouping of a metric whose label does not contain it.

    >>> make_heading("nDCG(by=gender & age < 25, gap=difference)@10")
    'nDCG@10, gap by gender and age < 25'
    >>> make_heading("REC-ST(label=truth.gender)@10"), make_heading("nDCG@10")
    ('REC-ST@10 (label truth.gender)', 'nDCG@10')
    >>> make_heading("women, gap=difference@10", "gender"), make_heading("women@10", "gender")
    ('women@10, gap by gender', 'women@10 by gender')
    """
    match = _TITLE.fullmatch(title)
    pairs = [text.partition("=") for text in _split(match["settings"])] if match else []
    if match is None or not all(sign for _, sign, _ in pairs):
        return _add_grouping(title, by)
    settings = {name.strip(): value.strip() for name, _, value in pairs}
    by, gap = settings.pop("by", by), settings.pop("gap", "")
    described = ", ".join(
        f"{name.replace('_', ' ')} {value}".removesuffix(" True")
        for name, value in settings.items()
    )
    heading = f"{match['name']}{match['cutoff'] or ''}{f' ({described})' if described else ''}"
    return _append_grouping(heading, by, gap)


def ungroup(title: str) -> str:
    """Return the title of a metric without its grouping.

    >>> ungroup("nDCG(by=gender & age < 25, min_group=20)@10"), ungroup("women@10")
    ('nDCG@10', 'women@10')
    >>> ungroup("REC-ST(label=truth.gender, by=gender)@10")
    'REC-ST(label=truth.gender)@10'
    """
    match = _TITLE.fullmatch(title)
    if match is None:
        return title
    settings = [text.strip() for text in _split(match["settings"])]
    kept = [text for text in settings if text.partition("=")[0] not in _GROUPING]
    described = f"({', '.join(kept)})" if kept else ""
    return f"{match['name']}{described}{match['cutoff'] or ''}"


def _add_grouping(label: str, by: str) -> str:
    match = _LABELLED_GAP.fullmatch(label)
    if match is None or not by:
        return _append_grouping(label, by, "")
    return _append_grouping(f"{match['label']}{match['cutoff'] or ''}", by, match["gap"])


def _append_grouping(heading: str, by: str, gap: str) -> str:
    if not by:
        return f"{heading}, {gap}" if gap else heading
    grouping = re.sub(r"\s*&\s*", " and ", by)
    return f"{heading}, {_GAPS[gap]} {grouping}" if gap in _GAPS else f"{heading} by {grouping}"


def _split(settings: str) -> Iterator[str]:
    """Yield the settings, which commas separate unless they are in brackets."""
    depth = start = 0
    for position, character in enumerate(settings):
        depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and depth == 0:
            yield settings[start:position]
            start = position + 1
    yield settings[start:]


def quote_labels(group: str, by: str) -> list[str]:
    """Return the parts of a group; labels with blanks at an end are quoted, so that they show.

    >>> quote_labels("gender=M &age <= 25", "gender & age <= 25")
    ["gender='M '", 'age <= 25']
    """
    columns, parts = [part.strip() for part in by.split("&")], group.split("&")
    if len(parts) != len(columns):  # a label contains the sign
        return [group]
    quoted = []
    for part, column in zip(parts, columns, strict=True):
        label = part.removeprefix(f"{column}=")
        is_hidden = label != part and label != label.strip()
        quoted.append(f"{column}='{label}'" if is_hidden else part)
    return quoted


def name_group(group: str, by: str) -> str:
    """Return a group in a sentence.

    >>> name_group("gender=F&age < 25", "gender & age < 25"), name_group("genre=R&B", "genre")
    ('gender=F and age < 25', 'genre=R&B')
    """
    return " and ".join(quote_labels(group, by))
