"""Reading a reply of a language model as a list of proposed titles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from recbias.language.replies.reply_items import LABEL, Proposal, parse_item
from recbias.language.replies.reply_json import parse_json_entries
from recbias.language.replies.title_forms import list_plain_years

MAX_REPLY_LENGTH = 100_000
"""How many characters of a reply are read."""

MAX_PLAIN_LENGTH = 80
"""The longest line that may be a title without a marker and without a year."""

_NUMBER = re.compile(r"(?:\((\d{1,2})\) ?|#?(\d{1,3})(?: ?[.):\]] ?(?!\d)| [-–—] ))")
_BULLET = re.compile(r"[-*+•‣▪●◦·–—] |[•‣▪●◦·]")
_NEXT_NUMBER = re.compile(r"(?<= )(\d{1,3})[.)] ")
_YEAR_LINE = re.compile(
    r"[-*+•]? ?\**(?:release )?(?:year|date)(?: of release)?:\** ?((?:18|19|20)\d\d)\b",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|>~-])")
_SENTENCE_END = (".", ":", "?", "!", ",")


@dataclass(frozen=True)
class ParsedReply:
    """The titles that a reply proposes.

    Args:
        proposals: The titles in order, at most k.
        is_prose: Whether there is text, but no list of titles in it: an apology, for example.
    """

    proposals: tuple[Proposal, ...]
    is_prose: bool


def parse_reply(text: str, k: int) -> ParsedReply:
    r"""Return the titles that a reply proposes, at most ``k``.

    A reply is JSON, or lines. Of its lines, those of one kind are the list: the first that occurs
    of numbered, rows of a table, bulleted, and unmarked. If the lines of that kind have no year in
    brackets, a later kind with more years than they are lines is the list instead. All other
    lines, such as an introduction, are left out. Unmarked lines count from the first to the last
    with a year, unless they end like a sentence. Without any year, they count if there are at
    least two, or one with two commas, and all are short.

    A label (``Title: A``) counts as a bullet, and a year on a line of its own (``Year: 1995``)
    belongs to the item before it. A line may hold several titles: numbered (``1. A 2. B``), each
    with its year, in quotes, or separated by semicolons.

    >>> reply = parse_reply("Sure! Here you go:\n1. **Heat** (1995)\n2. Casino, 1995", 10)
    >>> [(proposal.title, proposal.year) for proposal in reply.proposals]
    [('Heat', 1995), ('Casino', 1995)]
    >>> parse_reply("I am sorry, I cannot recommend movies.", 10)
    ParsedReply(proposals=(), is_prose=True)

    Args:
        text: The reply.
        k: The largest number of titles.
    """
    text = text[:MAX_REPLY_LENGTH]
    proposals = parse_json_entries(text) or _parse_lines(text, k)
    return ParsedReply(tuple(proposals[:k]), bool(text.strip()) and not proposals)


def _parse_lines(text: str, k: int) -> list[Proposal]:
    proposals: list[Proposal] = []
    for line in _select_list(text):
        if len(proposals) >= k:
            break
        proposals += parse_item(line)
    return proposals


def _select_list(text: str) -> list[str]:
    """Return the lines that are the list, without markers."""
    kinds = _group_lines(text)
    plain = kinds["plain"]
    selected: list[str] = []
    for items in (kinds["number"], kinds["row"], kinds["bullet"], _select_dated(plain)):
        if not _count_years(selected) and (_count_years(items) > len(selected) or not selected):
            selected = items
    return selected or _select_titles_without_marker(plain)


def _count_years(lines: Sequence[str]) -> int:
    return sum(bool(list_plain_years(line)) for line in lines)


def _select_dated(lines: Sequence[str]) -> list[str]:
    """Return the unmarked lines from the first to the last with a year, without sentences."""
    titles = [line for line in lines if not line.endswith((".", ":", "?"))]
    dated = [row for row, line in enumerate(titles) if list_plain_years(line)]
    return titles[dated[0] : dated[-1] + 1] if dated else []


def _group_lines(text: str) -> dict[str, list[str]]:
    """Return the items of each kind of line; a year on a line of its own joins the last item."""
    kinds: dict[str, list[str]] = {"number": [], "row": [], "bullet": [], "plain": []}
    items: list[str] = []
    for line in _clean_lines(text):
        year = _YEAR_LINE.match(line)
        if year and items:
            items[-1] += f" ({year[1]})"
        elif _is_table_rule(line):
            kinds["row"].clear()  # the header
        else:
            kind, pieces = _classify(line)
            items = kinds[kind]
            items += pieces
    return kinds


def _clean_lines(text: str) -> list[str]:
    """Return the lines that are not blank, headings or fences, without markdown."""
    lines = []
    for line in text.splitlines():
        plain = " ".join(_ESCAPE.sub(r"\1", line).split()).lstrip("> ")
        title = plain.lstrip("#").lstrip()
        is_heading = plain.startswith(("# ", "##")) and not _NUMBER.match(title)
        if title and not is_heading and not plain.startswith(("```", "~~~")):
            lines.append(title if plain.startswith(("# ", "##")) else plain)
    return lines


def _classify(line: str) -> tuple[str, list[str]]:
    """Return the kind of a line, and the items that it holds."""
    if line.startswith("|"):
        return "row", _read_cells(line)
    bullet = _BULLET.match(line)
    text = line[bullet.end() :] if bullet else line
    label = LABEL.match(text)
    text = text[label.end() :] if label else text
    number = _NUMBER.match(text.lstrip("_*"))
    if number:
        rest = text.lstrip("_*")[number.end() :]
        return "number", _split_numbered(rest, int(number[1] or number[2]))
    return ("bullet", [text]) if bullet or label else ("plain", [line])


def _split_numbered(text: str, number: int) -> list[str]:
    """Return the items of a line on which the numbering goes on: ``A 2. B 3. C`` after ``1.``."""
    items, start = [], 0
    for match in _NEXT_NUMBER.finditer(text):
        if int(match[1]) == number + 1:
            items.append(text[start : match.start()])
            start, number = match.end(), number + 1
    return [*items, text[start:]]


def _read_cells(line: str) -> list[str]:
    """Return the title and year of a row of a table as one item; a rank comes before the title."""
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    if re.fullmatch(r"\d{1,3}\.?", cells[0]) and len(cells) > 1:
        cells = cells[1:]
    years = [cell for cell in cells[1:] if re.fullmatch(r"(?:18|19|20)\d\d", cell)]
    return [f"{cells[0]} ({years[0]})" if years else cells[0]]


def _is_table_rule(line: str) -> bool:
    """Return whether a line is the rule below the header of a table: ``|---|---|``."""
    return "-" in line and "|" in line and set(line) <= set("|-: ")


def _select_titles_without_marker(lines: Sequence[str]) -> list[str]:
    """Return unmarked lines without years, if they look like titles."""
    titles = [line for line in lines if not line.endswith(_SENTENCE_END)]
    if len(lines) == 1:
        titles = [title for line in titles for title in _split_line(line)]
    is_list = len(titles) > 1 and all(len(title) <= MAX_PLAIN_LENGTH for title in titles)
    return titles if is_list else []


def _split_line(line: str) -> list[str]:
    """Return the titles on the only line of a reply, also those separated by commas."""
    titles = [proposal.title for proposal in parse_item(line)]
    if len(titles) == 1 and line.count(",") > 1 and not line.startswith(("[", "{")):
        return [title.strip() for title in line.split(",")]
    return titles
