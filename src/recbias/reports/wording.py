"""Text for people: escaping, headings of metrics, numbers, failures and warnings, tables.

Everything from data is escaped; a column has one number of decimals, with about four
significant digits.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from recbias.core.context import summarize_failures
from recbias.core.measures import Direction
from recbias.registry import name_metric

if TYPE_CHECKING:
    import pandas as pd

    from recbias.reports.run import RunTables

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_EMPTY = frozenset({"input", "rect", "line"})
_SPECIAL = re.compile(f"[&<>\"']|{_UNPRINTABLE.pattern}")
_PATH = re.compile(r"(?<![\w.:/~-])(?:[A-Za-z]:[\\/]|/)(?:[^\s\\/:*?\"'<>|,;()]+[\\/]){1,}(?=\S)")


class Safe(str):
    """Markup, which is not escaped again, here or in a template."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return the markup for Jinja."""
        return str(self)


def clean(text: object) -> str:
    """Return a text with the characters that XML and HTML forbid replaced by U+FFFD.

    >>> clean("a" + chr(0) + "b") == "a" + chr(0xFFFD) + "b"
    True
    """
    return _UNPRINTABLE.sub("\ufffd", str(text))


def to_line(text: object) -> str:
    """Return a clean text with every run of white space replaced by one space.

    >>> to_line("two  " + chr(10) + "lines")
    'two lines'
    """
    return " ".join(clean(text).split())


def escape(value: object) -> Safe:
    """Return a value as markup: text is escaped, markup stays as it is.

    >>> escape("<b>"), escape(Safe("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    if isinstance(value, Safe):
        return value
    text = str(value)
    return Safe(html.escape(clean(text)) if _SPECIAL.search(text) else text)


def join(*parts: object) -> Safe:
    """Escape parts and concatenate them.

    >>> join("1 < 2 ", Safe("<br>"))
    '1 &lt; 2 <br>'
    """
    return Safe("".join(map(escape, parts)))


def tag(name: str, *children: object, **attributes: object) -> Safe:
    """Return an element with escaped children and attributes.

    In an attribute's name, an underscore stands for a hyphen, and a final underscore is removed.
    Attributes that are None or False are omitted.

    >>> tag("td", "<script>", class_="n", data_value=0.5, hidden=None)
    '<td class="n" data-value="0.5">&lt;script&gt;</td>'
    """
    text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _EMPTY and not children:
        return Safe(f"<{name}{text}/>")
    return Safe(f"<{name}{text}>{join(*children)}</{name}>")


def strip_folders(value: object) -> object:
    """Return a JSON value in which every path is reduced to its last component.

    Reports are shared, and must not reveal the folders of the machine that wrote them.

    >>> strip_folders({"help": "no file '/home/ann/data/x.csv'"})
    {'help': "no file '.../x.csv'"}
    """
    if isinstance(value, str):
        return _PATH.sub(".../", value)
    if isinstance(value, dict):
        return {key: strip_folders(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(strip_folders, value))
    return value


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
GROUPING = frozenset({"by", "gap", "min_group", "reference_group", "pairs"})
_COMMA = re.compile(r",(?![^(\[{]*[)\]}])")  # that separates settings, not within brackets


def make_heading(title: str, by: str = "") -> str:
    """Return a readable heading of a metric; a label without settings stays as it is.

    Args:
        title: The name or label of the metric, with its cutoff.
        by: The grouping of a metric whose label does not contain it.

    >>> make_heading("nDCG(by=gender & age < 25, gap=difference)@10")
    'nDCG@10, gap by gender and age < 25'
    >>> make_heading("REC-ST(label=truth.gender)@10"), make_heading("ItemCoverage@10")
    ('REC-ST@10 (label truth.gender)', 'item coverage@10')
    >>> make_heading("women, gap=difference@10", "gender"), make_heading("women@10", "gender")
    ('women@10, gap by gender', 'women@10 by gender')
    """
    match = _TITLE.fullmatch(title)
    pairs = [text.partition("=") for text in _COMMA.split(match["settings"])] if match else []
    if match is None or not all(sign for _, sign, _ in pairs):
        return _add_grouping(title, by)
    settings = {name.strip(): value.strip() for name, _, value in pairs}
    by, gap = settings.pop("by", by), settings.pop("gap", "")
    described = ", ".join(
        f"{name.replace('_', ' ')} {value}".removesuffix(" True")
        for name, value in settings.items()
    )
    name = name_metric(match["name"])
    heading = f"{name}{match['cutoff'] or ''}{f' ({described})' if described else ''}"
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
    settings = [text.strip() for text in _COMMA.split(match["settings"])]
    kept = [text for text in settings if text.partition("=")[0] not in GROUPING]
    described = f"({', '.join(kept)})" if kept else ""
    return f"{match['name']}{described}{match['cutoff'] or ''}"


def _add_grouping(label: str, by: str) -> str:
    name, at, cutoff = label.partition("@")
    label = f"{name_metric(name)}{at}{cutoff}"
    match = _LABELLED_GAP.fullmatch(label)
    if match is None or not by:
        return _append_grouping(label, by, "")
    return _append_grouping(f"{match['label']}{match['cutoff'] or ''}", by, match["gap"])


def _append_grouping(heading: str, by: str, gap: str) -> str:
    if not by:
        return f"{heading}, {gap}" if gap else heading
    grouping = re.sub(r"\s*&\s*", " and ", by)
    return f"{heading}, {_GAPS[gap]} {grouping}" if gap in _GAPS else f"{heading} by {grouping}"


def name_group(group: str, by: str) -> str:
    """Return a group in a sentence.

    >>> name_group("gender=F&age < 25", "gender & age < 25"), name_group("genre=R&B", "genre")
    ('gender=F and age < 25', 'genre=R&B')
    """
    return " and ".join(split_group(group, by))


def split_group(group: str, by: str) -> list[str]:
    """Return the parts of a group, one for each label that it is of."""
    parts = group.split("&")
    return parts if len(parts) == by.count("&") + 1 else [group]  # else a label contains the sign


_COMPOUND = re.compile("&[^&]*=|[<>!]=?|==")  # a label that joins several labels, or a condition


def get_label_value(label: str) -> str:
    """Return the value of a label; compound labels and conditions are returned unchanged.

    >>> get_label_value("location=office"), get_label_value("race=black&gender=F")
    ('office', 'race=black&gender=F')
    >>> get_label_value("age < 18"), get_label_value("categories=Coffee & Tea")
    ('age < 18', 'Coffee & Tea')
    """
    return label if _COMPOUND.search(label) else label.partition("=")[2] or label


def get_label_name(labels: Iterable[str]) -> str:
    """Return the name that all labels share, blank if there is none.

    >>> get_label_name(["race=black", "race=white"]), get_label_name(["age < 18", "not age < 18"])
    ('race', '')
    """
    names = set()
    for label in labels:
        terms = label.split("&") if _COMPOUND.search(label) else [label]
        if not all("=" in term for term in terms):
            return ""
        names.add("&".join(term.partition("=")[0] for term in terms))
    return names.pop() if len(names) == 1 else ""


def format_setting(value: object) -> str:
    """Return a value of the experiment file as text: a plug-in with its settings in brackets.

    >>> format_setting([{"name": "threshold", "at_least": 4, "columns": {}}, "deduplicate"])
    'threshold (at least 4), deduplicate'
    """
    if isinstance(value, dict):
        name = str(value.get("name", ""))
        settings = ", ".join(
            f"{str(key).replace('_', ' ')} {format_setting(item)}"
            for key, item in value.items()
            if key != "name" and item not in (None, [], {})
        )
        return f"{name} ({settings})" if name and settings else name or settings
    if isinstance(value, list):
        return ", ".join(map(format_setting, value))
    return f"{value:g}" if isinstance(value, float) else str(strip_folders(str(value)))


UNDEFINED = "n/a"
"""The text of an undefined value."""


def count_decimals(values: Iterable[float]) -> int:
    """Return the number of decimals for a column: four for values near one, none for counts.

    >>> [count_decimals(column) for column in ([0.3406, 0.0079], [12.5], [1034.2], [0.0004])]
    [4, 3, 1, 6]
    >>> count_decimals([58.0, 3.0])
    0
    """
    finite = [value for value in values if math.isfinite(value)]
    largest = max(map(abs, finite), default=0.0)
    if largest >= 10 and all(value.is_integer() for value in finite):
        return 0
    if largest == 0.0 or 0.01 <= largest < 10:
        return 4
    if largest < 0.01:
        return 6
    return max(1, 4 - math.floor(math.log10(largest)))


def add_places(
    rows: Iterable[Mapping[str, Any]], names: Collection[str], by: str = "metric"
) -> list[dict[str, Any]]:
    """Return rows with ``places``: the decimals of the numbers of all rows of the same metric.

    >>> rows = [{"metric": "year", "value": 1987.5}, {"metric": "nDCG", "value": 0.2}]
    >>> [row["places"] for row in add_places(rows, ["value"])]
    [1, 4]
    """
    numbers: dict[object, list[float]] = {}
    for row in rows:
        numbers.setdefault(row[by], []).extend(row[name] for name in names)
    places = {key: count_decimals(own) for key, own in numbers.items()}
    return [{**row, "places": places[row[by]]} for row in rows]


def format_value(value: float, places: int) -> str:
    """Return a value with the given number of decimals; years have no thousands separator.

    >>> format_value(0.34061, 4), format_value(float("nan"), 4), format_value(12345.6, 1)
    ('0.3406', 'n/a', '12,345.6')
    >>> format_value(1987.0, 0)
    '1987'
    >>> format_value(-0.00001, 4)
    '0.0000'
    """
    if math.isnan(value):
        return UNDEFINED
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    text = f"{value:{choose_separator(value)}.{places}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def choose_separator(value: float) -> str:
    """Return the thousands separator of a value: none up to 9999, which may be a year.

    >>> choose_separator(-1987.5), choose_separator(10_000.0)
    ('', ',')
    """
    return "," if abs(value) >= 10_000 else ""


def format_interval(low: float, high: float, places: int) -> str:
    """Return an interval as text, blank where a bound is undefined.

    >>> format_interval(0.25, 0.35, 2), format_interval(float("nan"), 0.35, 2)
    ('0.25 to 0.35', '')
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"{format_value(low, places)} to {format_value(high, places)}"


def format_estimate(value: float, low: float, high: float, places: int | None = None) -> str:
    """Return a value with its interval in brackets, if it has one.

    >>> format_estimate(0.0431, 0.031, 0.055), format_estimate(12.5, math.nan, 0.0)
    ('0.0431 [0.0310, 0.0550]', '12.500')
    """
    places = count_decimals([value, low, high]) if places is None else places
    text = format_value(value, places)
    if math.isnan(low) or math.isnan(high):
        return text
    return f"{text} [{format_value(low, places)}, {format_value(high, places)}]"


def format_p_value(value: float, alpha: float = math.nan) -> str:
    """Return a p-value with two significant digits, or the bound 0.0001.

    It has more digits where two would round it down to ``alpha``.

    >>> [format_p_value(value) for value in (0.0312, 1e-30, 1.0, float("nan"))]
    ['0.031', '< 0.0001', '1.0', 'n/a']
    >>> [format_p_value(value, 0.05) for value in (0.0501, 0.0499, 0.05 + 1e-9)]
    ['0.0501', '0.05', '> 0.05']
    """
    if math.isnan(value):
        return UNDEFINED
    if value < 1e-4:
        return "< 0.0001"
    if value > alpha >= float(f"{value:.2g}"):
        texts = (f"{value:.{digits}g}" for digits in (3, 4, 5))
        return next((text for text in texts if float(text) > alpha), f"> {alpha:g}")
    return f"{value:.2g}" if value < 0.995 else "1.0"


def format_count(value: float, noun: str) -> str:
    """Return a count with its noun in the singular or plural.

    >>> format_count(1, "model"), format_count(5949, "user"), format_count(2, "query")
    ('1 model', '5,949 users', '2 queries')
    """
    if value != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{value:,.0f} {noun}"


def join_names(names: Sequence[object], word: str = "and") -> str:
    """Return names as a list in a sentence.

    >>> join_names(["EASE"]), join_names(["EASE", "SLIM"]), join_names(["a", "b", "c"], "or")
    ('EASE', 'EASE and SLIM', 'a, b or c')
    """
    texts = [to_line(name) for name in names]
    return f" {word} ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def count_names(names: Sequence[str], most: int = 4) -> str:
    """Return names in a sentence; above ``most`` the others are counted.

    >>> count_names(["a", "b", "c"]), count_names(["a", "b", "c"], 2)
    ('a, b and c', 'a, b and 1 more')
    """
    return join_names([*names[:most], *[f"{len(names) - most} more"] * (len(names) > most)])


def format_duration(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours.

    >>> format_duration(0.42), format_duration(75), format_duration(3900)
    ('0.42 s', '1 min 15 s', '1 h 5 min')
    """
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, remainder = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {remainder} s"
    return f"{minutes // 60} h {minutes % 60} min"


def describe_limit(check: Mapping[str, Any]) -> str:
    """Return the limit of a check; of one with a baseline, that of the difference from it.

    >>> describe_limit({"limit": "not below MostPop - 0.01", "baseline": "MostPop"})
    'at least -0.01'
    >>> describe_limit({"limit": "not above MostPop", "baseline": "MostPop"})
    'at most 0'
    """
    limit, baseline = to_line(check["limit"]), to_line(check["baseline"])
    for words, bound in (("not below", "at least"), ("not above", "at most")):
        start = f"{words} {baseline}"
        if baseline and limit.startswith(start):
            margin = limit.removeprefix(start).replace(" ", "").removeprefix("+")
            return f"{bound} {margin or 0}"
    return limit


def list_failures(run: RunTables) -> list[str]:
    """Return one line per cause of failures: the first stage, the error and the remedy."""
    return [
        to_line(
            f"{failure.stage} failed: {failure.message}."
            + (f" Help: {failure.help}" if failure.help else "")
        )
        for failure in summarize_failures(run.manifest.get("failures", []))
    ]


def list_warnings(run: RunTables) -> list[str]:
    """Return the warnings of the run: one line per cause, with its stage if it has one only."""
    stages: dict[str, list[str]] = {}
    for line in dict.fromkeys(map(to_line, run.manifest.get("warnings", []))):
        _, separator, cause = line.partition(": ")
        stages.setdefault(cause if separator else line, []).append(line)
    return [cause if lines[1:] else lines[0] for cause, lines in stages.items()]


@dataclass(frozen=True)
class Cell:
    """A cell of a table: the text that is displayed, and the number that its column is sorted by.

    The value is NaN for text and for undefined numbers. A mark is a superscript behind the text:
    letters or a star. The note has the standard deviation, the 95% interval and counts.
    """

    text: str
    value: float = math.nan
    best: bool = False
    second: bool = False
    mark: str = ""
    interval: str = ""
    note: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it holds a number, which may be undefined."""
        return not math.isnan(self.value) or self.text == UNDEFINED


@dataclass(frozen=True)
class Column:
    """A column of a table; its note is a sentence that explains it.

    The column of a metric has the metric's title as ``key``, and the family of metrics.
    """

    title: str
    numeric: bool = False
    direction: Direction = "none"
    note: str = ""
    key: str = ""
    family: str = ""

    @property
    def plugin(self) -> str:
        """The name of the metric in a spec, blank if the title has it."""
        name = re.split(r"[(@]", self.key)[0]
        return name if name_metric(name) != name else ""


def number_cell(value: float, places: int) -> Cell:
    """Return a number with its text."""
    return Cell(format_value(value, places), value)


def interval_cell(low: float, high: float, places: int, none: str = "") -> Cell:
    """Return an interval, which is sorted by its lower end; ``none`` stands for no interval."""
    return Cell(format_interval(low, high, places) or none, low)


VALUE_COLUMNS: Mapping[str, Callable[[Mapping[str, Any]], Cell]] = {
    "value": lambda row: number_cell(row["value"], row["places"]),
    "95% interval": lambda row: interval_cell(
        row["ci_low"], row["ci_high"], row["places"], "none"
    ),
}
"""Columns of ``tabulate`` that hold the value of a row and its interval."""


@dataclass(frozen=True)
class Table:
    """A table for display: rows with one cell per column, and footnotes."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def row_headers(self) -> int:
        """The number of columns that head a row: those before the first numeric column."""
        numeric = (at for at, column in enumerate(self.columns) if column.numeric)
        return next(numeric, 1)

    @property
    def mark_width(self) -> int:
        """The length of the longest mark behind a value."""
        cells = (cell for row in self.rows for cell in row[self.row_headers :])
        return max((len(cell.mark) for cell in cells), default=0)

    @property
    def keys(self) -> str:
        """What the metrics are called in a spec, where the headings have other names."""
        pairs = {column.plugin: name_metric(column.plugin) for column in self.columns}
        texts = [f"{name} is {key}" for key, name in pairs.items() if key]
        return f"In a spec: {', '.join(texts)}." if texts else ""

    def select(self, *titles: str) -> Table:
        """Return the table with the columns of these titles only."""
        return self.select_columns(
            [at for at, column in enumerate(self.columns) if column.title in titles]
        )

    def without_blanks(self, *kept: str) -> Table:
        """Return the table without the columns that are blank in every row, but with ``kept``."""
        filled = [
            at
            for at, column in enumerate(self.columns)
            if column.title in kept or any(row[at].text for row in self.rows)
        ]
        return self.select_columns(filled)

    def select_columns(self, positions: Sequence[int]) -> Table:
        """Return the table with the columns at these positions only."""
        columns = tuple(self.columns[at] for at in positions)
        rows = tuple(tuple(row[at] for at in positions) for row in self.rows)
        return replace(self, columns=columns, rows=rows)


def tabulate(
    title: str,
    rows: Iterable[Any],
    columns: Mapping[str, Callable[[Any], Cell | str]],
    notes: Iterable[str] = (),
) -> Table:
    """Return a table with a line for each row; a column of cells with values is numeric.

    Args:
        title: The title.
        rows: What each line is made of.
        columns: From a row to its cell or text, by the heading of the column.
        notes: The footnotes.
    """
    lines = []
    for row in rows:
        found = [make(row) for make in columns.values()]
        lines.append(tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in found))
    heads = [
        Column(heading, numeric=any(line[at].is_number for line in lines))
        for at, heading in enumerate(columns)
    ]
    return Table(title, tuple(heads), tuple(lines), tuple(notes))


def tabulate_frame(title: str, frame: pd.DataFrame) -> Table:
    """Return a data frame as a table, with blanks for undefined numbers."""
    columns = {str(name).replace("_", " "): [*_make_cells(frame, name)] for name in frame}
    heads = (
        Column(name, numeric=any(cell.is_number for cell in cells))
        for name, cells in columns.items()
    )
    return Table(title, tuple(heads), tuple(zip(*columns.values(), strict=True)))


_EVIDENCE = frozenset({"p", "p_adjusted", "e"})
"""Columns of numbers of any size, which have four significant digits each."""


def _make_cells(frame: pd.DataFrame, name: Hashable) -> Iterator[Cell]:
    values = frame[name].tolist()
    places = count_decimals(value for value in values if isinstance(value, float))
    for value in values:
        if isinstance(value, float):
            text = f"{value:.4g}" if name in _EVIDENCE else format_value(value, places)
            yield Cell("" if math.isnan(value) else text, value)
        else:
            is_number = isinstance(value, int) and not isinstance(value, bool)
            text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            yield Cell(text, float(text) if is_number else math.nan)


def pick(*names: str) -> dict[str, Callable[[Mapping[str, Any]], str]]:
    """Return columns of ``tabulate`` that hold the texts of rows under the same names."""

    def make_column(name: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: str(row[name])

    return {name: make_column(name) for name in names}


_CUTOFF = re.compile(r"@\d+(?=$|[, ])")
"""The cutoff in a heading."""


def split_cutoff(heading: str) -> tuple[str, str]:
    """Return a heading without its cutoff, and the cutoff or a blank text.

    >>> split_cutoff("nDCG@10, gap by gender"), split_cutoff("R-RIPA")
    (('nDCG, gap by gender', '@10'), ('R-RIPA', ''))
    """
    match = _CUTOFF.search(heading)
    return _CUTOFF.sub("", heading, count=1), match[0] if match else ""


def state_cutoff_once(table: Table) -> Table:
    """Return the table with the cutoff in its title, if all its metrics have the same one."""
    texts = [at for at, column in enumerate(table.columns) if column.title == "metric"]
    headings = [column.title for column in table.columns if column.key]
    headings += [row[at].text for at in texts for row in table.rows]
    cutoffs = {split_cutoff(heading)[1] for heading in headings} - {""}
    if len(cutoffs) != 1:
        return table
    columns = tuple(
        replace(column, title=split_cutoff(column.title)[0]) if column.key else column
        for column in table.columns
    )
    rows = tuple(
        tuple(
            replace(cell, text=split_cutoff(cell.text)[0]) if at in texts else cell
            for at, cell in enumerate(row)
        )
        for row in table.rows
    )
    return replace(table, title=f"{table.title} ({cutoffs.pop()})", columns=columns, rows=rows)
