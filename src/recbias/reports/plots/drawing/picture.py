"""A picture that matplotlib drew: in a page, as a file of its own, and for print."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from recbias.reports.markup import Safe, clean, escape, tag
from recbias.reports.plots.drawing.colours import NAMES
from recbias.reports.plots.drawing.svg import number

_FONT = "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"
_OURS = ("svg.", "pdf.", "path.", "savefig.", "font.", "text.", "lines.", "patch.", "markers.")
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "recbias",
    "pdf.fonttype": 42,
}
_UNSIGNED = ("Date", "Creator", "Format", "Type")
_STYLE = re.compile(r"\s*<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_COLOUR = re.compile(r"#[0-9a-f]{6}(?![0-9a-f])")


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture.

    Args:
        name: The file's name without its ending.
        title: What it shows.
        caption: What is seen, with figures.
        width: Width in its own units, 13 of which text is high.
        height: Height in the same.
        body: The elements, in the colours of paper.
        drawn: What matplotlib has drawn.
    """

    name: str
    title: str
    caption: str
    width: float
    height: float
    body: Safe
    drawn: Any

    def inline(self) -> Safe:
        """Return the picture for a page that has ``page.css``, by day and by night."""
        return self._svg(
            _by_theme(self.body),
            role="img",
            aria_label=f"{self.title}. {self.caption}",
            style=f"max-width:{self.width * 1.2:.0f}px;min-width:{self.width * 0.7:.0f}px",
        )

    def document(self) -> Safe:
        """Return the picture as a file of its own."""
        paper = tag("rect", width=number(self.width), height=number(self.height), fill="#ffffff")
        return self._svg(
            tag("title", self.title),
            tag("desc", self.caption),
            paper,
            self.body,
            xmlns="http://www.w3.org/2000/svg",
            width=number(self.width),
            height=number(self.height),
        )

    def pdf(self) -> bytes:
        """Return the picture for print, with its fonts in it."""
        written = io.BytesIO()
        unsigned = {"Creator": None, "Producer": None, "CreationDate": None}
        with _settled():
            metadata = {**unsigned, "Title": clean(self.title)}
            self.drawn.savefig(written, format="pdf", metadata=metadata)
        return written.getvalue()

    def _svg(self, *inside: object, **attributes: object) -> Safe:
        return tag(
            "svg",
            *inside,
            class_="picture",
            viewBox=f"0 0 {number(self.width)} {number(self.height)}",
            font_family=_FONT,
            stroke_linejoin="round",
            **{"xmlns:xlink": "http://www.w3.org/1999/xlink"},
            **attributes,
        )


def elements(drawn: Any, *, name: str, words: Mapping[str, str]) -> Safe:
    """Return what matplotlib drew as SVG elements, the same bytes each time.

    Identifiers begin with the picture's name, so that a page may hold several.

    Args:
        drawn: The matplotlib figure.
        name: The picture's name.
        words: What is shown over an element, by its ``gid``.
    """
    name = escape(name)
    written = io.StringIO()
    with _settled():
        drawn.savefig(written, format="svg", metadata=dict.fromkeys(_UNSIGNED))
    text = written.getvalue()
    inside = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    inside = _STYLE.sub("", inside, count=1)
    inside = _TAG.sub(lambda found: _renamed(found[0], name), inside)
    for gid, said in words.items():
        own = f'<g id="{name}.{gid}">'
        inside = inside.replace(own, f"{own}{tag('title', said)}", 1)
    return Safe(re.sub(r"\n\s*", "\n", inside).strip())


def _renamed(found: str, name: str) -> str:
    """Return a tag with identifiers of the picture's own, and without what says nothing."""
    found = re.sub(r' id="|href="#|url\(#', lambda each: f"{each[0]}{name}.", found)
    return re.sub(r"; font-family: [^;\"]*| transform=\"rotate\(-?0 [^\"]*\"", "", found)


def _by_theme(body: str) -> Safe:
    def variable(found: re.Match[str]) -> str:
        known = NAMES.get(found[0])
        return f"var(--picture-{known}, {found[0]})" if known else found[0]

    return Safe(_TAG.sub(lambda found: _COLOUR.sub(variable, found[0]), body))


@contextmanager
def _settled() -> Iterator[None]:
    """Have matplotlib's own settings whatever a user's are; a glyph a font lacks is no warning."""
    import matplotlib as mpl

    usual: dict[Any, Any] = {
        key: each for key, each in mpl.rcParamsDefault.items() if key.startswith(_OURS)
    }
    with mpl.rc_context({**usual, **_SETTINGS}), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=r"Glyph \d+ .*missing from", category=UserWarning
        )
        yield
