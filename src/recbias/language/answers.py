"""The titles that the answer of a model lists.

An answer is read in steps: signs of other scripts are written as in English; the list is JSON,
else a table, else the lines of one kind; each of its entries holds one title, or several.
"""

from __future__ import annotations

import csv
import html
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from recbias.language.titles import YEAR, list_plain_years, split_year

_TITLE_KEYS = (
    *("title", "movie_title", "film_title", "movie_name", "film_name", "name", "movie", "film"),
    *(
        "recommended_movie",
        "recommendation",
        "suggestion",
        "pick",
        "try",
        "item_title",
        "item_name",
        "item",
        "book",
        "show",
    ),
    *("片名", "电影名称", "电影名", "电影", "標題", "标题", "名称", "電影", "タイトル", "作品名"),
    *("映画", "제목", "영화", "영화제목", "titre", "titel", "filmtitel", "título", "titulo"),
    *("nombre", "nom", "película", "pelicula", "filme", "titolo", "tytuł", "название", "фильм"),
    *("शीर्षक", "फिल्म"),
    *("العنوان", "الفيلم", "tiêu_đề", "phim", "judul", "başlık"),
)
"""The keys of an object, columns of a table and labels of lines that hold a title; the first that
occurs is used."""

_YEAR_KEYS = (
    *("year", "release_year", "year_of_release", "released", "release_date", "release", "date"),
    *("年份", "上映年份", "年", "公開年", "年代", "연도", "개봉", "개봉연도", "année", "annee"),
    *("jahr", "erscheinungsjahr", "año", "ano", "anno", "rok", "год", "वर्ष", "साल", "السنة"),
    *("năm", "tahun", "yıl"),
)
"""The same for its year."""

_RANK_KEYS = ("rank", "ranking", "position", "排名", "順位", "순위", "rang", "место")

_LIST_KEYS = {
    *("recommendations", "movies", "films", "titles", "items", "results", "list", "ranking"),
    *("answer", "picks", "suggestions", "recommended_movies", "recommended", "top_movies"),
}
"""The keys of an object that hold the list, beside others with lists."""

_MAX_REPLY_LENGTH = 100_000  # how many characters of a reply are read
_MAX_LINES = 5_000
_MAX_TITLE_LENGTH = 200  # the longest text that is a title
_MAX_HEADER_LINES = 3  # how many first lines may be the header of a table without bars
_MAX_PLAIN_LENGTH = 80  # the longest line that may be a title without a marker and without a year


@dataclass(frozen=True)
class _Proposal:
    """A title that a reply proposes.

    Args:
        title: The title without year; blank if the item has none that can be read.
        year: The year, None if it is missing.
        line: The item as written.
    """

    title: str
    year: int | None
    line: str


@dataclass(frozen=True)
class ParsedReply:
    """The titles that a reply proposes.

    Args:
        proposals: The titles in order, at most k.
        is_prose: Whether there is text, but no list of titles in it: an apology, for example.
    """

    proposals: tuple[_Proposal, ...]
    is_prose: bool


_LIST_HEADING = re.compile(
    r"^[^\w\n]{0,9}(?:(?:my|the|your|our|here are) )?(?:(?:top \d+|final|film|movie) )?"
    r"(?:recommendations|suggestions|picks|list|ranking)[^\w\n]{0,9}$"
    r"|^\W{0,9}(?:[^\W\d]{2,6} )?(?:empfehlungen|recommandations|recomendaciones|recomendações"
    r"|raccomandazioni|consigli|рекомендации|推荐|推薦|おすすめ|추천)\W{0,9}$"
    r"|\b(?:corrected|revised|updated|final) (?:recommendations|list|ranking)\b.{0,80}:\W{0,9}$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line before the list, after a draft or the films that were watched."""

_STEMS = (
    r"recom|suggest|might (?:like|enjoy)|you may|empf|sug[eé]r|consigl|рекоменд|推荐|推薦"
    r"|おすすめ|勧め|추천|final answer|最终答案"
)
_RECOMMENDS = re.compile(
    rf"^[^\n]{{0,200}}?(?:{_STEMS})[^\n:：]{{0,200}}[:：][*_ ]*$(?=\s*(?:[*_]*1 ?[.)\]、]|[《-]))",
    re.IGNORECASE | re.MULTILINE,
)
"""The first line that introduces recommendations, before a list."""

_SECOND_LINE = re.compile(r"^\W{0,9}2 ?[.)\]、]", re.MULTILINE)
_INLINE_FIRST = re.compile(
    r"^(?!\s*\d)([^\n]{1,120}?[:：!.>])[ ]*(?=1([.)、])[^\n]+\n\s*2\2)", re.MULTILINE
)
_INLINE_BULLET = re.compile(r"^([^\n*•-]{1,120}?[:：!])[ ]*(?=([-*•]) [^\n]+\n\2 )", re.MULTILINE)
"""An introduction with the first item on its line, before those that count on."""

_LATEX = re.compile(r"\\(?:(item\b)|(?:begin|end)\{(?:enumerate|itemize)\})")
_IN_BRACKETS = re.compile(r"\s*\[1\] [^\n]+ \[2\] ")
_NUMBER_IN_BRACKETS = re.compile(r"\s*\[(?=\d{1,3}\] )")
"""Lists of LaTeX, and of one line: ``[1] Heat [2] Fargo``."""

_BRACKETS = re.compile(r"\A\s*\[([^\[\]{}\"]*[^\W\d][^\[\]{}\"]*)\]\s*\Z")
"""A list without quotes: ``[Heat (1995), Fargo (1996)]``."""

_QUOTED_LIST = re.compile(r"\A\s*[\[(](\s*['\"‘“„].*['\"’”]\s*),?\s*[\])]\s*\Z", re.DOTALL)
_STRAIGHT = str.maketrans("‘’“”„", '\'\'"""')
"""A list or tuple of Python, with whatever quotes."""

_CELL_OF_TUPLE = r"(?:\"[^\"\n]+\"|'[^'\n]+'|\d[\d.]*)"
_TUPLE = re.compile(
    rf"(^[^\w\n]*(?:\d{{1,3}}[.)] ?)?|[\[(,]\s*)"
    rf"\(\s*({_CELL_OF_TUPLE}(?:\s*,\s*{_CELL_OF_TUPLE})+)\s*,?\s*\)",
    re.MULTILINE,
)
"""A row as a tuple of Python: ``("Heat", 1995)``."""


def parse_reply(text: str, k: int, is_title: Callable[[str], bool] | None = None) -> ParsedReply:
    r"""Return the titles that an answer proposes, at most ``k``.

    The answer is JSON, before, between or after other text; else a table; else lines. Of lines,
    those with one kind of marker are the list: numbers, labels (``Title: A``), bullets of one
    depth, or none. The outermost kind is the list, unless it has no years in brackets and another
    has more of them than it has lines; one stray numbered line is not. All other lines, such as
    an introduction, are left out. Lines without a marker count from the first to the last with a
    year, unless they end like a sentence; without any year, if they are short and at least two.

    A number is a marker at the start of a line only, or where one line has the whole list; before
    a colon or in brackets only if the lines beside it count on (``300: Rise of an Empire``). A
    year alone on a line, or in a column, belongs to the item beside it. A line may hold several
    titles: each with its year, or in quotes; the only line also between commas or semicolons.
    With a catalogue, a line in which more titles of it stand side by side is read by them:
    ``I, Robot, Heat and Alien`` are three; what stands before ``I recommend`` is not read.

    >>> reply = parse_reply("Sure! Here you go:\n1. **Heat** (1995)\n2. Casino, 1995", 10)
    >>> [(proposal.title, proposal.year) for proposal in reply.proposals]
    [('Heat', 1995), ('Casino', 1995)]
    >>> parse_reply("I am sorry, I cannot recommend movies.", 10)
    ParsedReply(proposals=(), is_prose=True)

    Args:
        text: The answer, without thought.
        k: The largest number of titles.
        is_title: Whether the catalogue has a title; None without a catalogue.
    """
    text = _write_signs(text[:_MAX_REPLY_LENGTH])
    if len(_TUPLE.findall(text)) > 1:
        text = _TUPLE.sub(_join_tuple, text)
    if quoted := _QUOTED_LIST.match(text):
        text = f"[{quoted[1].translate(_STRAIGHT)}]"
    else:
        text = _BRACKETS.sub(r"\1", text)
    text = _LATEX.sub(lambda command: "\n- " if command[1] else "\n", text)
    if _IN_BRACKETS.match(text):
        text = _NUMBER_IN_BRACKETS.sub("\n", text)
    text = _INLINE_BULLET.sub(r"\1\n", _INLINE_FIRST.sub(r"\1\n", text))
    heading = max((mark.end() for mark in _LIST_HEADING.finditer(text)), default=0)
    second = _RECOMMENDS.search(text)
    if second and _SECOND_LINE.search(text, 0, second.start()):
        heading = max(heading, second.end())
    proposals = _read_json(text, k) or _read_lines(text[heading:], k) or _read_lines(text, k)
    if is_title is not None:
        proposals = _drop_labels(proposals, is_title)
        if not any(proposal.year for proposal in proposals):
            proposals = _read_enumerated(text, is_title, proposals)
    return ParsedReply(tuple(proposals[:k]), bool(text.strip()) and not proposals)


def _join_tuple(match: re.Match[str]) -> str:
    """Return a tuple as the text of its title: ``"Heat (1995)"``."""
    cells = [cell.strip("\"'") for cell in re.findall(_CELL_OF_TUPLE, match[2])]
    return match[1] + json.dumps(_join_cells(cells, None, None), ensure_ascii=False)


def _read_lines(text: str, k: int) -> list[_Proposal]:
    lines = _divide_lines(text)
    lines = [line for line in lines if len(lines) == 1 or not _HISTORY.match(line)]
    proposals: list[_Proposal] = []
    for entry in _read_table(lines) or _select_list(_mark_lines(lines), k):
        if len(proposals) >= k:
            break
        proposals += [_make_proposal(title, entry) for title in _split_titles(entry)]
    return proposals


_SIGNS = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},  # full-width letters and signs
    **str.maketrans("　【】〔〕〖〗│┃،؛", " [][][]||,;"),
}
"""Signs of other scripts as they are in English."""

_INVISIBLE = " \t\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\ufe0f\ufeff"

_ENCLOSED = re.compile(
    r"(?m)^([^\w\n]*)(?:([\u2160-\u216b\u2460-\u249b\u2776-\u2793]|🔟)|((?:\d\ufe0f?\u20e3)+))\.?"
)
"""A Roman or circled number of one sign, or keycaps, at the start of a line."""


def _write_signs(text: str) -> str:
    """Return a text with digits and signs of other scripts as they are in English."""
    text = re.sub(r"(?![0-9])\d", lambda digit: str(int(digit[0])), text.translate(_SIGNS))
    return _ENCLOSED.sub(lambda match: f"{match[1]}{_read_enclosed(match)}. ", text)


def _read_enclosed(match: re.Match[str]) -> str:
    """Return the number of a circled digit or of keycaps."""
    if match[3]:
        return re.sub(r"\D", "", match[3])
    return "10" if match[2] == "🔟" else str(int(unicodedata.numeric(match[2])))


_VALUE = re.compile(
    r"(?:^[ \t]*(?:[-*•] |\d{1,3}[.)] )?|(?P<inside>[:=.!?>(]) ?|```\w{0,10} ?)(?=[\[{])",
    re.MULTILINE,
)
_LISTED = re.compile(rf"^[ \t]*(?:[-*•]|\d{{1,3}}[.)]) ?[^\s\[{{]|[(\[]{YEAR}[)\]]", re.MULTILINE)
_TRAILING_COMMA = re.compile(r",\s*(?=[\]}])")
_PYTHON_QUOTE = re.compile(r"(?<=[\[{,:])( ?|\n *)'|'(?=\s?[,\]}:])")
_MAX_BROKEN = 50  # how many brackets that begin no JSON are tried


def _read_json(text: str, k: int) -> list[_Proposal]:
    r"""Return the titles of the JSON values in a text; empty if there is none with titles.

    An entry of a list that is neither text nor an object with a title keeps its rank without one.

    >>> reply = 'Here: \n{"movies": [{"title": "Heat", "year": 1995}, "Casino (1995)"]}'
    >>> [(proposal.title, proposal.year) for proposal in _read_json(reply, 10)]
    [('Heat', 1995), ('Casino', 1995)]
    """
    for source in (text, _TRAILING_COMMA.sub("", _PYTHON_QUOTE.sub(r'\1"', text))):
        entries = [entry for value in _iterate_values(source) for entry in _list_entries(value)]
        texts = [entry for entry in entries if isinstance(entry, str)]
        if len(texts) == len(entries) == 1 and (listed := _read_lines(texts[0], k)):
            return listed
        if len(texts) == len(entries):
            entries = [line.text for line in _mark_counted([*map(_mark_line, texts)])]
        ranks = [_get_text(entry, _RANK_KEYS) for entry in entries]
        if all(map(str.isdigit, ranks)) and len({*map(int, ranks)}) == len(ranks):
            entries = [
                entries[row] for row in sorted(range(len(ranks)), key=lambda r: int(ranks[r]))
            ]
        proposals = [_read_entry(entry) for entry in entries]
        if any(proposal.title for proposal in proposals):
            return proposals
    return []


def _iterate_values(text: str) -> Iterator[Any]:
    """Yield the JSON values in a text, but none that is a detail of a list of lines."""
    decoder, position, n_broken, n_read = json.JSONDecoder(strict=False), 0, 0, 0
    listed = _LISTED.search(text)
    while n_broken < _MAX_BROKEN and (start := _VALUE.search(text, position)):
        position = start.end() + 1
        if start["inside"] and listed and listed.start() < start.start():
            continue
        try:
            value, position = decoder.raw_decode(text, start.end())
        except RecursionError:
            n_broken += 1
        except ValueError:
            n_broken += 1
            if not n_read and (whole := _close_value(text[start.end() :])):
                yield json.loads(whole, strict=False)
                return
        else:
            n_read += 1
            yield value


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},]', re.DOTALL)


def _close_value(text: str) -> str:
    """Return the whole entries of a JSON value that was cut short; blank if there are none."""
    expected, whole = "", ""
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            expected = "]}"["[{".index(token[0])] + expected
        elif token[0] in "]}":
            if not expected.startswith(token[0]) or len(expected) == 1:
                return ""
            expected = expected[1:]
        is_whole = token[0][0] in '"]}' if expected.startswith("]") else token[0] == ","
        if is_whole and "}" not in expected[:-1]:
            whole = text[: token.start() if token[0] == "," else token.end()] + expected
    try:
        json.loads(whole, strict=False)
    except ValueError:
        return ""
    return whole


_RANK_KEY = re.compile(r"\D{0,20}\d{1,3}")


def _list_entries(value: Any) -> list[Any]:
    """Return the entries of a JSON value: of a list, or of the lists in an object, or itself."""
    if not isinstance(value, dict):
        pairs = [[*each.items()] if isinstance(each, dict) else [] for each in value]
        return [
            _name_entry(*pair[0]) if len(pair) == 1 and not _get_text(each, _TITLE_KEYS) else each
            for each, pair in zip(value, pairs, strict=True)
        ]
    if isinstance(called := value.get("arguments", value.get("parameters")), dict):
        value = called  # of a tool
    children = {key: child for key, child in value.items() if isinstance(child, (list, dict))}
    lists = [child for child in children.values() if isinstance(child, list) and child]
    objects = [child for child in lists if isinstance(child[0], dict)]
    if all(map(_RANK_KEY.fullmatch, value)) and (len(value) > 1 or not lists):
        return [_name_entry(key, child) for key, child in value.items()]
    if not objects and _get_text(value, _TITLE_KEYS):
        return [value]
    named = [child for key, child in children.items() if _spell_key(key) in _LIST_KEYS]
    if chosen := named or objects or lists or ([*children.values()] if len(children) == 1 else []):
        return [entry for child in chosen for entry in _list_entries(child)]
    if len(value) > 1 and all(isinstance(child, float) for child in value.values()):
        return [*value]  # titles with scores
    listed = [key for key in value if _spell_key(key) in _LIST_KEYS]
    texts = [value[key] for key in listed if isinstance(value[key], str)]
    entries = texts or [_name_entry(key, child) for key, child in value.items()]
    is_list = len(value) > 1 or _spell_key(next(iter(value), "")) in _LIST_KEYS
    return entries if is_list or any(isinstance(entry, dict) for entry in entries) else []


def _name_entry(key: str, child: Any) -> Any:
    """Return an entry by rank (``{"1": "Heat"}``) or by title (``{"Heat": 1995}``)."""
    if isinstance(child, dict):
        return child if _get_text(child, _TITLE_KEYS) else {**child, "title": key}
    is_title = _YEAR.fullmatch(str(child).strip()) or list_plain_years(key)
    return {"title": key, "year": child} if is_title else child


def _read_entry(entry: Any) -> _Proposal:
    line = json.dumps(entry, ensure_ascii=False)
    if isinstance(entry, str):
        return _make_proposal(html.unescape(entry), entry)
    if isinstance(entry, list):
        return _make_proposal(_join_cells([str(cell) for cell in entry], None, None), line)
    text = html.unescape(_get_text(entry, _TITLE_KEYS))
    year = _find_year(_get_text(entry, _YEAR_KEYS))
    return _make_proposal(_add_year(split_year(text)[0], year) if year else text, line)


def _get_text(entry: Any, keys: tuple[str, ...]) -> str:
    """Return the text or number of the first key; a title may be in an object, or be one."""
    if not isinstance(entry, dict):
        return ""
    values = {_spell_key(key): value for key, value in entry.items()}
    present = [values[key] for key in keys if key in values]
    texts = [str(value) for value in present if isinstance(value, (str, int))]
    inner = [_get_text(value, keys) for value in values.values() if isinstance(value, dict)]
    named = [str(next(iter(value.values()), "")) for value in present if isinstance(value, dict)]
    return next(filter(None, [*texts, *inner, *named]), "")


def _spell_key(key: str) -> str:
    """Return a key in small letters: ``movie_title`` for ``Movie Title`` and ``movieTitle``."""
    return re.sub(r"[\s_-]+|(?<=[a-z])(?=[A-Z])", "_", key.strip(" *_")).casefold()


_YEAR = re.compile(rf"(?<!\d){YEAR}(?!\d)")


def _find_year(text: str) -> str:
    match = _YEAR.search(text)
    return match[0] if match else ""


def _add_year(title: str, year: str) -> str:
    return f"{title} ({year})" if year and not list_plain_years(title) else title


_TAG = re.compile(r"</?(?:b|strong|i|em|u|a|span|th|td)(?:\s[^<>]*)?>", re.IGNORECASE)
_HEAD = re.compile(
    r"<!(?:--.*?--|[^<>]*)>|<(head|style)(?:\s[^<>]*)?>.*?</\1>", re.IGNORECASE | re.DOTALL
)
"""The parts of a page that are not shown."""

_BREAK = re.compile(
    r"<br ?/?>|</(?:li|dt|dd)>"
    r"|</?(?:tr|p|div|h\d|table|thead|tbody|html|body|main|section|article)(?:\s[^<>]*)?>",
    re.IGNORECASE,
)
_CELL = re.compile(r"(</t[dh]>|<tr(?:\s[^<>]*)?>)\s*<t[dh](?:\s[^<>]*)?>\s*", re.IGNORECASE)
_ELEMENT = re.compile(
    r"<(title|movie|film|name|item|recommendation|year)(?:\s[^<>]*)?>([^<>\n]+)</\1>",
    re.IGNORECASE,
)
_TITLE_TAG = re.compile(r"<h\d(?:\s[^<>]*)?>\s*", re.IGNORECASE)
_LIST_TAG = re.compile(r"<(/?)(ol|ul|dl|li|dt|dd)(?:\s[^<>]*)?>\s*", re.IGNORECASE)
_LINK = re.compile(r"\[([^\[\]]{1,200})\]\(https?:[^()\s]*\)|\[\[([^\[\]]{1,200})\]\]")
_NOTE = re.compile(r"(?<=[\w)*”\"])\[\^?\d{1,2}\]")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|>~-])")
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_QUOTATION = re.compile(r"^(?: ?> ?)+", re.MULTILINE)


def _divide_lines(text: str) -> list[str]:
    """Return the lines with text, without HTML, links, marks of quotation and fences."""
    text = _HEAD.sub("", html.unescape(_ESCAPE.sub(r"\1", text)))
    text = _mark_items(_BREAK.sub("\n", _TITLE_TAG.sub("\n## ", _CELL.sub(r"\1 | ", text))))
    text = _TAG.sub("", _ELEMENT.sub("\n\\1: \\2\n", text))
    text = _QUOTATION.sub("", _NOTE.sub("", _LINK.sub(r"\1\2", text)))
    text = _INDENT.sub(lambda blanks: blanks[0].expandtabs(4), text)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()][:_MAX_LINES]
    return [line for line in lines if not line.lstrip().startswith(("```", "~~~"))]


def _mark_items(text: str) -> str:
    """Return a text with the items of HTML as bullets, those of inner lists further in."""
    depth = 0

    def mark(match: re.Match[str]) -> str:
        nonlocal depth
        tag = match[2].casefold()
        if tag in {"ol", "ul", "dl"}:
            depth = max(0, depth - 1 if match[1] else depth + 1)
            return "\n"
        indent = max(0, depth - 1) + (tag == "dd")
        return f"\n{'    ' * indent}- "

    return _LIST_TAG.sub(mark, text)


def _read_table(lines: Sequence[str]) -> list[str]:
    """Return the title and year of each row of a table as one text; empty without a table."""
    header, rows = _find_rows(lines)
    keys = [_spell_key(cell) for cell in header]
    title, year = (
        next((keys.index(name) for name in names if name in keys), None)
        for names in (_TITLE_KEYS, _YEAR_KEYS)
    )
    return [_join_cells(row, title, year) for row in rows]


_OUTER_BARS = re.compile(r"^\s*\||\|\s*$")


def _find_rows(lines: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a table with bars, tabs, semicolons or commas."""
    rules = [row for row, line in enumerate(lines) if _is_rule(line)]
    barred = [
        row
        for row, line in enumerate(lines)
        if row not in rules and (line.lstrip().startswith("|") or (rules and "|" in line))
    ]
    if barred:
        inner = [_OUTER_BARS.sub("", lines[row]) for row in barred]
        cells = [[cell.strip() for cell in line.split("|")] for line in inner]
        has_header = (rules and barred[0] < rules[0]) or _has_title_key(cells[0])
        return (cells[0], cells[1:]) if has_header else ([], cells)
    for row, line in enumerate(lines[:_MAX_HEADER_LINES]):
        for separator in "\t;|,":
            header = line.split(separator)
            if len(header) > 1 and _has_title_key(header) and not line.endswith(_SENTENCE_END):
                cells = [*csv.reader(lines[row + 1 :], delimiter=separator, skipinitialspace=True)]
                return header, [each for each in cells if len(each) == len(header)]
    return [], []


def _has_title_key(cells: Sequence[str]) -> bool:
    return any(_spell_key(cell) in _TITLE_KEYS for cell in cells)


def _is_rule(line: str) -> bool:
    """Return whether a line is the rule below the header of a table: ``|---|---|``."""
    return "-" in line and "|" in line and set(line) <= set("|-:+= ")


def _join_cells(cells: Sequence[str], title: int | None, year: int | None) -> str:
    """Return the title and year of a row as one text.

    Without a column of titles, the title is in the first cell with a year in brackets, else in
    the first one that is neither a rank nor a year.
    """
    texts = [cell for cell in cells if not re.fullmatch(r"\W*\d{0,3}\W*", cell)]
    years = [cell for cell in texts if _YEAR.fullmatch(cell.strip("*_() "))]
    dated = [cell for cell in texts if cell not in years and list_plain_years(cell)]
    names = [cell for cell in texts if cell not in years]
    if title is not None and title < len(cells):
        name = cells[title]
        years = [cell for cell in years if cell != name]
    else:
        name = next(iter([*dated, *names, *years]), "")
    column = cells[year : year + 1] if year is not None else years
    return _add_year(name, next((found for cell in column if (found := _find_year(cell))), ""))


def _join_names(keys: Sequence[str]) -> str:
    """Return a pattern of keys, the longest first."""
    names = sorted((key.replace("_", " ") for key in keys), key=len, reverse=True)
    return f"(?:{'|'.join(map(re.escape, names))})"


_LABEL = re.compile(
    rf"[*_]*{_join_names(_TITLE_KEYS)}"
    r"(?:(?: ?#?\d{1,3})?[*_]* ?:| ?(?:n[°º.] ?)?\d{1,3}[*_]* ?[:–—-])[*_]* ?(?=.)",
    re.IGNORECASE,
)
"""The label of a title: ``Title:``, ``Movie 1:``."""

_YEAR_LINE = re.compile(
    rf"\W*(?P<label>{_join_names(_YEAR_KEYS)}\W{{1,6}})?{YEAR}(?:-\d\d-\d\d|年|년)?\W*",
    re.IGNORECASE,
)
_HEADING = re.compile(r"#{1,6} +|(?=\*\*[^*]+\*\*\W*(?:\(\d{4}\))?\W*$)")
_BULLET = re.compile(
    r"[-*+–—] +|[•‣▪●◦·○■□◆◇\u2190-\u21ff\u25a0-\u275f\u2794-\u27bf\u2b00-\u2bff"
    r"\U0001f000-\U0001faff]+ ?"
)
_CHINESE = "一二三四五六七八九十"
_NUMBER = re.compile(
    rf"""
    [#№]\ ?(\d{{1,3}})\b[ .:)-]*                          # number sign
    | (\d{{1,3}})(?:st|nd|rd|th|er|re|e|ème|ª)(?:\ \w+)?\ ?[-–.:)]\ ?    # 1st place:
    | (\d{{1,3}})\ ?[.)\]、º°]{{1,2}}(?!\d)               # 1.
    | (\d{{1,3}})(?:[位위]|本目|番目|번째)\ ?[.:)-]?\ ?
    | \[(\d{{1,3}})\]
    | 第[{_CHINESE}\d]{{1,3}}[位名部]?\ ?[、.:)]?\ ?
    | \(?[{_CHINESE}]{{1,3}}[、.:)]\ ?
    """,
    re.VERBOSE,
)
"""A number that begins an item wherever it begins a line."""

_WORDS = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *(
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "nint",
        "tenth",
    ),
    *("erst", "zweit", "dritt", "viert", "fünft", "sechst", "siebt", "acht", "neunt", "zehnt"),
    *("premi", "deuxi", "troisi", "quatri", "cinqui", "sixi", "septi", "huiti", "neuvi", "dixi"),
    *("prim", "segund", "terc", "cuart", "quint", "sext", "séptim", "octav", "noven", "décim"),
    *("перв", "втор", "трет", "четв", "пят", "шест", "седьм", "восьм", "девят", "десят"),
    *("첫", "둘", "셋", "넷", "다섯", "여섯", "일곱", "여덟", "아홉", "열"),
    *("한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉", "열"),
)
"""The beginnings of numbers as words, ten of each form or language."""

_COUNT = re.compile(
    rf"""
    (?:(?:no|nr|rank|number|pick|movie|film|option|top|platz|place|position|n[°º]
      |day|nummer|numéro|número|empfehlung|recommandation|recomendación|推荐|推薦|おすすめ|추천
      |ลำดับ|อันดับ)\.?\ ?)?
    (?: (?P<digits>\d{{1,3}})(?:\ ?:(?!\d)|\ ?[-–—/>]\ |,(?=\D))    # 1: and 1 -
      | (?:во?-)?(?P<word>{"|".join(_WORDS)})[^\W\d_]{{0,7}}
        (?:\ (?:pick|choice|place|film|movie|번째))?[*_]*
        (?:\ ?[:.,)]|\ [-–—])[*_]*\                       # First: and Number one -
      | \((?P<bracketed>\d{{1,3}})\)\ ?
      | (?P<roman>[ivx]{{1,4}})[.)][ ]
      | (?P<letter>[a-zа-я])[.)][ ]
      | (?P<spaced>\d{{1,3}})[\ \t](?=[^\W\d]) )
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A number or letter that begins an item only if the next line of its form counts on."""

_ROMAN = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii")
_RULE = re.compile(r"\s*(?:[-*_=]\s?){3,}")  # of Markdown, between the list and other text
_RUN = re.compile(r"(?:^|(?<=[\s,;:、)》」』]))\(?(\d{1,2})([.)、])\s*(?=\D)")


@dataclass(frozen=True)
class _Line:
    """A line with its marker.

    Args:
        kind: ``heading``, ``number``, ``label``, ``bullet`` or ``plain``.
        depth: The indent, in pairs of blanks.
        text: The text after the marker.
        number: The number of the marker, 0 without one.
        row: The place among all lines.
    """

    kind: str
    depth: int
    text: str
    number: int = 0
    row: int = 0


def _mark_lines(lines: Sequence[str]) -> list[_Line]:
    """Return the lines with their markers; a year on a line of its own joins its item."""
    lines = [line for line in lines if not _RULE.fullmatch(line)]
    marked = [_mark_line(line) for line in lines]
    if sum(line.kind == "number" for line in marked) < 2:
        marked = [_mark_line(part) for line in lines for part in _divide_run(line)]
    marked = _mark_counted(marked)
    if depths := [line.depth for line in marked[1:] if line.kind == marked[0].kind]:
        marked[0] = replace(marked[0], depth=min(depths))  # servers remove the blanks at the start
    return [replace(line, row=row) for row, line in enumerate(_join_lines(marked))]


def _mark_line(line: str) -> _Line:
    text = line.strip(_INVISIBLE)
    kind, depth = "plain", (len(line) - len(line.lstrip())) // 2
    for name, pattern in (("heading", _HEADING), ("bullet", _BULLET)):
        if kind == "plain" and (marker := pattern.match(text)):
            kind, text = name, text[marker.end() :].strip(_INVISIBLE)
    if label := _LABEL.match(text):
        kind, text = "label", text[label.end() :]
    bare = text.lstrip("_*")
    if number := _NUMBER.match(bare):
        digits = next(filter(None, number.groups()), "0")
        return _Line("number", depth, bare[number.end() :].strip(), int(digits))
    return _Line(kind, depth, text)


def _divide_run(line: str) -> list[str]:
    """Return the items of a line with a whole list: ``1. A 2. B 3. C``."""
    starts: list[int] = []
    form = ""
    for match in _RUN.finditer(line):
        is_next = int(match[1]) == len(starts) + 1 and form in {"", match[2]}
        if is_next and line.rfind("(", 0, match.start()) <= line.rfind(")", 0, match.start()):
            starts.append(match.start())
            form = match[2]
    items = [line[start:end].rstrip(" ,;") for start, end in pairwise([*starts, len(line)])]
    return [item.removesuffix(" and") for item in items] if len(items) > 1 else [line]


def _mark_counted(lines: Sequence[_Line]) -> list[_Line]:
    """Return the lines with numbers and letters that count on from line to line as markers."""
    counts = [
        (row, match, *_read_count(match))
        for row, line in enumerate(lines)
        if line.kind != "number" and (match := _COUNT.match(line.text.lstrip("_*")))
    ]
    marked = list(lines)
    for at, (row, match, form, number) in enumerate(counts):
        beside = counts[max(at - 1, 0) : at] + counts[at + 1 : at + 2]
        goes_on = any(form == other and abs(number - n) == 1 for _, _, other, n in beside)
        if form == "spaced":  # 12 Angry Men, 13 Assassins
            goes_on = goes_on and number <= at + 1
        if goes_on or (form == "digits" and number == 1):
            text = match.string[match.end() :].strip()
            marked[row] = _Line("number", lines[row].depth, text, number)
    return marked


def _read_count(match: re.Match[str]) -> tuple[str, int]:
    """Return the form of a count, and its number."""
    form = match.lastgroup or ""
    text = match[form].casefold()
    if form == "roman":
        return form, _ROMAN.index(text) if text in _ROMAN else 0
    if form == "word":
        return form, _WORDS.index(text) % 10 + 1
    return form, ord(text) if form == "letter" else int(text)


def _join_lines(lines: Sequence[_Line]) -> list[_Line]:
    """Return the lines; one with a year only, or after a number only, joins its item."""
    joined: list[_Line] = []
    n_bare = sum(line.kind == "plain" and line.text.isdigit() for line in lines)
    for line in lines:
        last = joined[-1] if joined else line
        if last.kind == "number" and not last.text and line.kind == "plain":
            joined[-1] = replace(last, text=line.text)
        elif joined and _is_year_line(line, last, n_bare):
            row = _find_owner(joined, line.depth)
            text = _add_year(joined[row].text, _find_year(line.text))
            joined[row] = replace(joined[row], text=text)
        else:
            joined.append(line)
    return joined


def _is_year_line(line: _Line, last: _Line, n_bare: int) -> bool:
    """Return whether a line is the year of an item before, and not a film such as ``1917``."""
    year = _YEAR_LINE.fullmatch(line.text)
    is_bare = year is not None and not year["label"] and line.text.isdigit()
    is_beside = line.kind != last.kind or (n_bare > 1 and not last.text.isdigit())
    return year is not None and (not is_bare or is_beside)


def _find_owner(lines: Sequence[_Line], depth: int) -> int:
    """Return the item to which a line that follows belongs."""
    owners = [
        row
        for row, line in enumerate(lines)
        if line.kind in {"number", "label", "heading"}
        or (line.kind == "bullet" and line.depth < depth)
    ]
    return owners[-1] if owners else len(lines) - 1


def _select_list(lines: Sequence[_Line], k: int) -> list[str]:
    """Return the lines that are the list, without markers."""
    selected: Sequence[_Line] = []
    for group in _group_lines(lines, k):
        n_dated = 0 if any(map(_is_dated, selected)) else sum(map(_is_dated, group))
        is_whole = len(selected) >= k and group and group[0].row > selected[-1].row
        if not selected or (n_dated > len(selected) and not is_whole):
            selected = group
    if len(selected) > 1 and all(line.text.endswith("?") for line in selected):
        return []  # the model asks
    return _drop_directors(_move_years([line.text for line in selected]))


_WATCHED = re.compile(
    r"(?!.*\b(?:recom|suggest|here|go for|try)).*\b(?:watched|seen|liked|enjoyed|rated|history)\b",
    re.IGNORECASE,
)
"""Words of a line before the films that a user knows."""

_HISTORY = re.compile(
    r"[*_#>\s]{0,9}(?:(?:you|your|you['’]ve|have|the|user['’]?s?|watch|viewing|previously|already)"
    r" ){0,4}"
    r"(?:history|watched|liked|seen)[*_]{0,3} ?:(?=.*\w)",
    re.IGNORECASE,
)
"""The films that a user knows, on the line of their label."""

_KINDS = ("number", "label", "bullet")
"""The kinds of lines with a marker, in the order in which they are looked for."""


def _group_lines(lines: Sequence[_Line], k: int) -> Iterator[Sequence[_Line]]:
    """Yield the groups of lines that may be the list, the likeliest first."""
    headings = [line for line in lines if line.kind == "heading"]
    if sum(map(_is_dated, headings)) > 1:
        yield headings
    numbers = [line for line in lines if line.kind == "number"]
    first = lines.index(numbers[0]) if len(numbers) > 1 else 0
    if any(line.kind == "plain" and _WATCHED.match(line.text) for line in lines[:first]):
        lines = lines[first:]
    grouped: dict[tuple[int, int], list[_Line]] = defaultdict(list)
    for line in lines:
        if line.kind in _KINDS:
            grouped[line.depth, _KINDS.index(line.kind)].append(line)
    groups = [grouped[key] for key in sorted(grouped)]
    if len(numbers) == 1 < k:  # one stray number is no list beside others
        groups.sort(key=lambda group: not _outranks(group, numbers[0]))
    plain = [
        replace(line, text=text)
        for line in lines
        if line.kind == "plain" and (text := _skip_introduction(line.text))
    ]
    dated = _select_dated(plain)
    details = [line for group in groups for line in group]
    is_between = dated and details and dated[0].row < details[0].row < dated[-1].row
    if is_between and not any(map(_is_dated, details)):  # titles without markers, then details
        yield dated
    yield from map(_order_countdown, groups)
    yield dated
    if not groups:
        yield _select_unmarked(plain)
        yield headings


def _is_dated(line: _Line) -> bool:
    """Return whether a line shows that it holds a title, by a year or by marks of titles."""
    return bool(list_plain_years(line.text)) or line.text.startswith(("《", "『"))


def _outranks(group: Sequence[_Line], stray: _Line) -> bool:
    """Return whether a group is rather the list than the only line with a number."""
    is_list = len(group) > 1 and group[0].depth <= stray.depth
    return is_list and (_is_dated(group[0]) or not _is_dated(stray))


def _order_countdown(group: list[_Line]) -> list[_Line]:
    """Return numbered lines, from the last one if they count down to 1."""
    is_countdown = [line.number for line in group] == [*range(len(group), 0, -1)]
    return group[::-1] if is_countdown else group


_SENTENCE_END = (".", ":", "?", "!", "。", "।", "؟")
_DESCRIBED = re.compile(rf"[^.:]{{1,80}}\({YEAR}\) ?[:–—-]")
_TITLE_MARK = re.compile("[《『]")
_SEEN = re.compile(
    r"\A[^\n]{0,200}?(?:看过|看過|喜欢|喜歡|観た|見た)[^\n]{0,200}?(?:推荐|推薦|おすすめ|勧め)"
    r"(?=[^\n]{0,200}[《『])"
)
"""Films that a user knows, before those that are recommended in the same sentence."""
_INTRODUCTION = re.compile(
    r"\b(?:answer|here|my|your|picks|recom\w*|suggest\w*|sug[ei]r\w*|movies|films?|filme|list|titles"
    r"|películas|empf\w*|consigli\w*|рекоменд\w*|фильм\w*)\b|推荐|推薦|おすすめ|추천|电影|映画|영화",
    re.IGNORECASE,
)


_OPENING = re.compile(
    r"(?:sure|certainly|of course|here are|these are|below are|(?:my|your|the) (?:\w+ )?"
    r"(?:recommendations|suggestions|picks))\b",
    re.IGNORECASE,
)
"""The beginning of a first line that introduces a list, without a colon."""


def _skip_introduction(text: str) -> str:
    """Return the part of a line without marker that may hold titles; a sentence has none.

    It is a sentence of titles if it has several in marks of titles or after a colon.
    """
    text = _SEEN.sub("", text)
    if bold := _find_enumerated(text):
        return text[bold[0] :]
    is_sentence = text.endswith(_SENTENCE_END) and not _DESCRIBED.match(text)
    marks = [*_TITLE_MARK.finditer(text)]
    if marks and (len(marks) > 1 or not marks[0].start() or not is_sentence):
        return text[marks[0].start() :]
    introduction, _, rest = text.partition(":")
    is_introduction = bool(_INTRODUCTION.search(introduction))
    titles = _split_enumeration(rest) if is_introduction else _split_titles(rest)
    if (is_introduction or is_sentence) and rest and len(titles) > 1:
        return rest.strip(" .")
    return "" if is_sentence else text


def _select_dated(lines: Sequence[_Line]) -> list[_Line]:
    """Return the unmarked lines from the first to the last that shows its title."""
    dated = [row for row, line in enumerate(lines) if _is_dated(line)]
    return [*lines[dated[0] : dated[-1] + 1]] if dated else []


def _select_unmarked(lines: Sequence[_Line]) -> list[_Line]:
    """Return unmarked lines that show no title, if they are short."""
    titles = [line for line in lines if not line.text.endswith(",")]
    if len(titles) > 2 and _OPENING.match(titles[0].text):
        titles = titles[1:]
    if len(lines) == 1:
        titles = [replace(lines[0], text=title) for title in _split_enumeration(lines[0].text)]
    is_list = len(titles) > 1 and all(len(line.text) <= _MAX_PLAIN_LENGTH for line in titles)
    return titles if is_list else []


_YEAR_FIRST = re.compile(rf"\W*{YEAR}(?:年|년)?[)\]]?(?:\s*[:–—-]\s*(?=\S)| (?=[^\W\d]))")


def _move_years(texts: Sequence[str]) -> list[str]:
    """Return items whose years all stand in front of their titles with the years after them."""
    matches = [_YEAR_FIRST.match(text) for text in texts]
    if len(texts) < 2 or not all(matches) or any(map(list_plain_years, texts)):
        return list(texts)
    return [f"{match.string[match.end() :]} ({match[1]})" for match in matches if match]


_DIRECTOR = re.compile(r"(?<=\S)(?:,? directed)? by [A-Z][\w.'-]*(?: [A-Z][\w.'-]*){1,3}$")


def _drop_directors(texts: list[str]) -> list[str]:
    """Return items without their directors, if each names one: ``Heat by Michael Mann``."""
    is_list = len(texts) > 1 and all(map(_DIRECTOR.search, texts))
    return [_DIRECTOR.sub("", text) for text in texts] if is_list else texts


_EDGES = ' \t"“”„«»`*_,;|《》〈〉「」『』‹›、'
_QUOTED = re.compile(r"[\"“„«《〈「『]([^\"“”„«»《》〈〉「」『』]{1,200})[\"”“»》〉」』]")
_DATED_QUOTE = rf"{_QUOTED.pattern}(?: \({YEAR}\))?"
_ADJACENT = re.compile(rf"{_DATED_QUOTE}(?:\s+{_DATED_QUOTE})+")
"""Titles in quotes without a sign between them: ``"Heat" "Fargo"``."""

_AND = r"(?:and\b|und\b|et\b|e\b|y\b|и\b|和|与|及|と)"
_SEPARATORS = ",;/|&•+、>→"
_BETWEEN_TITLES = re.compile(
    rf"[\s\"”“»›》〉」』’'`*_]*(?:-?[{_SEPARATORS}]|{_AND})[\s{_SEPARATORS}]*(?:{_AND}\s*)?",
    re.IGNORECASE,
)
_LAST = re.compile(rf"^\s*{_AND}\s+", re.IGNORECASE)
_SEMICOLON = re.compile(r";(?![^()]*\))")
_DESCRIPTION = re.compile(r" (?:[–—→]|[-=]>) .*")
_AFTER_BOLD = re.compile(r"\*\*(\s*\([^()]*\))?.*")
_TWO_SCRIPTS = re.compile(r"^([\u3040-\u9fff\uac00-\ud7af·:]+)[》」』\s]+([A-Za-z][^()]*)$")
_INLINE_YEAR = re.compile(
    rf"[\s,;|(–-]{{0,4}}{_join_names(_YEAR_KEYS)} ?: ?{YEAR}.*", re.IGNORECASE
)
_SCORE = re.compile(r" ?[:=] ?[01]?\.\d+$")
_CREDIT = re.compile(r",? directed by .*|(?<=[\"”»])\W*by .*", re.IGNORECASE)
_LEADING_YEAR = re.compile(rf"^[(\[]{YEAR}[)\]]\W*(\w[^()]*)$")
_BOLD_YEAR = re.compile(rf"\*\*[^*]+\*\*,? \({YEAR}\)|\*\*[^*]+ \({YEAR}\)\*\*")
_BEFORE_BOLD = re.compile(rf"[;,] ?(?:{_AND} )?\Z", re.IGNORECASE)
_BOLD = re.compile(r"\*\*(?=[^*\s][^*]*\*\*)")


def _split_enumeration(text: str) -> list[str]:
    """Return the titles of a line; without years or quotes those between signs."""
    titles = _split_titles(text)
    if len(titles) == 1 and ";" in text:
        return [part for part in _SEMICOLON.split(text) if part.strip(_EDGES)]
    parts = re.split(r"[,、]| [>→/|·] ", text)
    parts += re.split(rf"(?<=\S)\s+{_AND}\s+", parts.pop(), maxsplit=1, flags=re.IGNORECASE)
    if len(titles) == 1 and len(parts) > 2 and not text.startswith(("[", "{")):
        return [_LAST.sub("", part).strip(" .") for part in parts]
    return titles


_MAX_ENUMERATED = 8  # the largest number of lines among which one is read as an enumeration
_MOST_PARTS = 4  # of a title: The Good, the Bad and the Ugly
_SIGN = re.compile(rf"(\s*[,;、/|·•→>&]\s*(?:{_AND}\s*)?|\s+{_AND}\s+|\s+[-–—]\s+)", re.IGNORECASE)
_BEFORE_TITLE = re.compile(
    r".*(?:[:!]|\b(?:recommend|suggest|like|enjoy|love|try|watch|watching|see|are|be|for"
    r"|with|is|films|movies|includ(?:e|es|ing))) (?=\S)",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(
    r".*\b(?:recommend|suggest|(?:might|may|could|will|would|should|'d)(?: also| really)?"
    r" (?:like|enjoy|love|try|watch|consider)) ",
    re.IGNORECASE,
)
_DECLINES = re.compile(
    r"\b(?:can ?not|can['’]?t|won['’]?t|not|unable to) (?:recommend|suggest)", re.IGNORECASE
)
_YEAR_INSIDE = re.compile(rf"\({YEAR}\)\W+\w")


def _read_enumerated(
    text: str, is_title: Callable[[str], bool], proposals: list[_Proposal]
) -> list[_Proposal]:
    """Return the titles of the line that has most of a catalogue, if more than were read."""
    lines = _divide_lines(text)
    most = max(1, sum(is_title(proposal.title) for proposal in proposals))
    for line in lines if len(lines) <= _MAX_ENUMERATED else []:
        whole = _mark_line(line).text
        text = _INTRODUCES.sub("", whole)  # what was watched stands before
        is_other = bool(_WATCHED.match(line) or _DECLINES.search(line))
        is_other |= text == whole and _YEAR_INSIDE.search(text) is not None
        titles = [] if is_other else _split_known(text, is_title)
        if (n_known := sum(map(is_title, titles))) > most:
            most, proposals = n_known, [_make_proposal(title, line) for title in titles]
    return proposals


def _drop_labels(proposals: list[_Proposal], is_title: Callable[[str], bool]) -> list[_Proposal]:
    """Return titles without labels of any words if no title has its label in the catalogue."""
    bare = [
        replace(each, title=each.title.rpartition(": ")[2].strip(_EDGES)) for each in proposals
    ]
    is_labelled = len(bare) > 1 and all(": " in each.title for each in proposals)
    known = sum(is_title(each.title) for each in bare)
    if (
        not is_labelled
        or 2 * known <= len(bare)
        or any(is_title(each.title) for each in proposals)
    ):
        return proposals
    return bare


def _split_known(text: str, is_title: Callable[[str], bool]) -> list[str]:
    """Return the parts of an enumeration; the longest run of parts that is a title is one."""
    parts, titles, start = _SIGN.split(text), list[str](), 0
    while start < len(parts):
        longest = min(len(parts), start + 2 * _MOST_PARTS - 1)
        for end in range(longest, start, -2):
            title = "".join(parts[start:end]).strip(_EDGES + ".!")
            if _YEAR_INSIDE.search(title):
                continue
            if not start and not is_title(title):
                title = _BEFORE_TITLE.sub("", title).strip(_EDGES)
            if is_title(title):
                break
        titles += [title] if title else []
        start = end + 1
    return titles


def _split_titles(item: str) -> list[str]:
    """Return the texts in an item that hold one title each."""
    if _ADJACENT.fullmatch(item):
        item = re.sub(r"(?<=[\"”“»)])\s+(?=[\"“„«])", ", ", item)
    item = _LEADING_YEAR.sub(r"\2 (\1)", _start_at_title(item))
    years = [match.end() for match in list_plain_years(item)]
    if bold := _find_enumerated(item):
        return [item[start:end] for start, end in pairwise([*bold, len(item)])]
    if years:
        return _split_at_years(item, years)
    quoted = [*_QUOTED.finditer(item)]
    if quoted and not item[: quoted[0].start()].strip(_EDGES):
        is_list = len(quoted) > 1 and all(
            _BETWEEN_TITLES.fullmatch(item[before.end() : after.start()])
            or item[before.end() - 1 : after.start() + 1] in {"》《", "」「", "』『"}
            for before, after in pairwise(quoted)
        )
        return [match[1] for match in quoted] if is_list else [_keep_names(item, quoted[0])]
    return [item]


_REASON = re.compile(
    r"(?:because|since|if|as) you (?:liked|loved|enjoyed|watched)[^:\n]{1,120}: ?", re.IGNORECASE
)


def _start_at_title(item: str) -> str:
    """Return an item from its title in bold on; a name in marks after another is in brackets."""
    item = item[reason.end() :] if (reason := _REASON.match(item)) else item
    bold, years = _BOLD.search(item), list_plain_years(item)
    if bold and (not years or bold.start() < years[0].start()):
        return item[bold.start() :]
    if item[:1] not in "《『〈「" and _TITLE_MARK.search(item):
        return re.sub("[《『]([^《》『』]*)[》』]", r" (\1) ", item)
    return item


def _find_enumerated(text: str) -> list[int]:
    """Return the starts of titles in bold with their years that a line enumerates."""
    bold = [match.start() for match in _BOLD_YEAR.finditer(text)]
    is_list = len(bold) > 1 and all(_BEFORE_BOLD.search(text, 0, start) for start in bold[1:])
    return bold if is_list else []


_PHRASE = re.compile(r"[a-z]+ [a-z]+ ")
"""The beginning of a description: ``Heat (1995), similar to Casino (1995)``."""


def _split_at_years(item: str, ends: list[int]) -> list[str]:
    """Return one text for each year that ends a title; text without a separator is description."""
    pieces, start = [item[: ends[0]]], ends[0]
    for end in ends[1:]:
        separator = _BETWEEN_TITLES.match(item, start, end)
        if separator is None or (_PHRASE.match(item, separator.end()) and not item[:1].islower()):
            break
        pieces.append(item[separator.end() : end])
        start = end
    return pieces


def _keep_names(item: str, quoted: re.Match[str]) -> str:
    """Return the quoted title, with the year and the other name that follow it at once."""
    rest = item[quoted.end() :][:80].lstrip()
    title, year = split_year(f"{quoted[1]} {rest}")
    name = re.match(r"\([^()]*\)", rest)
    return f"{title} ({year})" if year else f"{quoted[1]} {name[0] if name else ''}"


def _make_proposal(text: str, line: str) -> _Proposal:
    """Return the proposal of a text that holds one title; a blank title if it cannot be one."""
    text = " ".join(text.split())[: 5 * _MAX_TITLE_LENGTH]
    label = _LABEL.match(text)
    text = (text[label.end() :] if label else text).strip(_EDGES)
    title, year = split_year(_INLINE_YEAR.sub(r" (\1)", text))
    if year is None:
        title = _DESCRIPTION.sub("", title)
    else:
        title = re.sub(r"^(.+?) / (.+)$", r"\1 (\2)", title)
    title = _AFTER_BOLD.sub(r"\1", title.strip(_EDGES)).strip(_EDGES).rstrip(":")
    title = _TWO_SCRIPTS.sub(r"\1 (\2)", title)
    title = _SCORE.sub("", title)
    title = _CREDIT.sub("", re.sub(r"^<([^<>]*)>$", r"\1", title))
    is_title = len(title) <= _MAX_TITLE_LENGTH and any(map(str.isalnum, title))
    return _Proposal(title if is_title else "", year, line)
