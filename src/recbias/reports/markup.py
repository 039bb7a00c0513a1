"""HTML and SVG text in which whatever comes from data is escaped by construction."""

from __future__ import annotations

import html
import re

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_EMPTY = frozenset({"input", "rect", "line"})
_SPECIAL = re.compile(f"[&<>\"']|{_UNPRINTABLE.pattern}")
_PATH = re.compile(r"(?<![\w.:/~-])(?:[A-Za-z]:[\\/]|/)(?:[^\s\\/:*?\"'<>|,;()]+[\\/]){1,}(?=\S)")


class Safe(str):
    """Text that is markup already and is not escaped again."""

    __slots__ = ()


def clean(text: object) -> str:
    """Return a text without the characters that XML and HTML do not allow.

    >>> clean("a" + chr(0) + "b") == "a" + chr(0xFFFD) + "b"
    True
    """
    return _UNPRINTABLE.sub("\ufffd", str(text))


def one_line(text: object) -> str:
    """Return a clean text with every run of white space as one space.

    >>> one_line("two  " + chr(10) + "lines")
    'two lines'
    """
    return " ".join(clean(text).split())


def escape(value: object) -> Safe:
    """Return a value as markup: text escaped, markup as it is.

    >>> escape("<b>"), escape(Safe("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    if isinstance(value, Safe):
        return value
    said = str(value)
    return Safe(html.escape(clean(said)) if _SPECIAL.search(said) else said)


def join(*parts: object) -> Safe:
    """Return parts one after another as markup.

    >>> join("1 < 2 ", Safe("<br>"))
    '1 &lt; 2 <br>'
    """
    return Safe("".join(map(escape, parts)))


def tag(name: str, *inside: object, **attributes: object) -> Safe:
    """Return an element; what is inside and the attributes are escaped.

    An underscore in an attribute's name stands for a hyphen and one at its end for nothing; None
    and False leave the attribute out.

    >>> tag("td", "<script>", class_="n", data_value=0.5, hidden=None)
    '<td class="n" data-value="0.5">&lt;script&gt;</td>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _EMPTY and not inside:
        return Safe(f"<{name}{written}/>")
    return Safe(f"<{name}{written}>{join(*inside)}</{name}>")


def without_folders(value: object) -> object:
    """Return a JSON value whose texts name the last part of a path only.

    A report is passed on; where somebody's files lay is nobody else's business.

    >>> without_folders({"help": "no file '/home/ann/data/x.csv'"})
    {'help': "no file '.../x.csv'"}
    """
    if isinstance(value, str):
        return _PATH.sub(".../", value)
    if isinstance(value, dict):
        return {key: without_folders(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_folders(each) for each in value]
    return value
