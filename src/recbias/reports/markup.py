"""Text for HTML and SVG: everything from data is escaped."""

from __future__ import annotations

import html
import re

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
