"""The Jinja environments of the reports: every value is escaped for HTML or for Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from recbias.core.measurements.scores import Direction
from recbias.reports.markup import Safe, escape, to_line
from recbias.reports.views import trials
from recbias.reports.views.definitions import DIRECTION_LABELS
from recbias.reports.views.facts import format_setting
from recbias.reports.writers.downloads import list_downloads

if TYPE_CHECKING:
    from jinja2 import Environment

MINUS = "\N{MINUS SIGN}"

_MARKDOWN = re.compile(r"([\\`*_{}\[\]|~$#!])")
_HYPHEN = re.compile(r"(?<![^\s(])-(?=\d)")


def render(name: str, **context: object) -> str:
    """Render a template of this package.

    Text from the context is put on one line and escaped, unless a filter says otherwise.
    """
    return load_environment(name.split(".")[1]).get_template(name).render(context)


@cache
def load_environment(kind: str) -> Environment:
    """Return the environment of the templates of a format: ``html`` or ``md``."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(partial(read_resource, folder="templates")),
        autoescape=True,
        finalize=partial(_convert, escape_markdown if kind == "md" else to_line),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        auto_reload=False,
    )
    environment.globals |= {
        "direction_labels": DIRECTION_LABELS,
        "sort_first": {"higher": "descending", "lower": "ascending"},
    }
    environment.filters |= {
        "describe_search": trials.describe_search,
        "explain_missing_importances": trials.explain_missing_importances,
        "summarize_search": trials.summarize_search,
        "tabulate_searches": trials.tabulate_searches,
        "tabulate_trials": trials.tabulate_trials,
        "dict": dict,
        "downloads": list_downloads,
        "block": escape,
        "code": _indent_code,
        "minus": typeset_minus,
        "setting": format_setting,
        "sort_value": _get_sort_value,
        "zip": partial(zip, strict=False),
    }
    return environment


@cache
def read_resource(name: str, folder: str = "") -> str:
    """Return a text file that is packaged beside this module."""
    return files(__package__).joinpath(folder, name).read_text(encoding="utf-8")


def escape_markdown(text: object) -> Safe:
    r"""Return a text on one line, escaped for Markdown and HTML.

    >>> print(escape_markdown("a|b <i>_x_</i>"))
    a\|b &lt;i&gt;\_x\_&lt;/i&gt;
    """
    line = to_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Safe(_MARKDOWN.sub(r"\\\1", line))


def typeset_minus(text: object) -> str:
    """Return a text with minus signs instead of hyphens before numbers.

    >>> typeset_minus("-0.5 to -0.1, ml-1m")
    '−0.5 to −0.1, ml-1m'
    """
    return _HYPHEN.sub(MINUS, to_line(text))


def _convert(convert: Callable[[str], str], value: Any) -> Any:
    return convert(value) if type(value) is str else value


def _indent_code(text: str) -> Safe:
    """Return an indented block, in which Markdown has no markup."""
    return Safe("\n".join(f"    {line}" for line in text.splitlines()))


def _get_sort_value(value: float, direction: Direction) -> str:
    return f"{abs(value) if direction == 'zero' else value:.7g}"
