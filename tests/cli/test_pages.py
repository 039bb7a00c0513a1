from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from recbias.cli.catalogue import describe_default, read_page, reflow, split_entries
from recbias.config.settings import Parameter
from recbias.core.docstrings import read_docstring, split_sections
from recbias.registry import REGISTRIES

NAMES = [(kind, name) for kind, registry in REGISTRIES.items() for name in registry.table]


@dataclass(frozen=True, kw_only=True)
class Stars:
    """Count the ``stars`` of each list.

        stars = Σ s

    A list: it may be

    - long, over
      two lines;
    - short.

    Args:
        k: How many.

    Raises:
        NothingLeft: No list
            has items.

    >>> 1 + 1
    2

    Undefined without stars.

    Source:
        A paper, 2001.
    """

    direction: ClassVar[str] = "lower"
    k: int = 3


def test_docstring_is_split_into_its_sections() -> None:
    sections = split_sections(read_docstring(Stars))
    assert set(sections) == {"", "Args", "Raises", "Example", "Source"}
    assert sections["Args"] == "k: How many."
    assert sections["Raises"] == "NothingLeft: No list\n    has items."
    assert sections["Example"] == ">>> 1 + 1\n2"
    assert sections["Source"] == "A paper, 2001."
    assert "    stars = Σ s" in sections[""].splitlines()
    assert "Undefined without stars." in sections[""]
    assert "A list: it may be" in sections[""]


def test_class_without_a_docstring_has_no_sections() -> None:
    class Bare: ...

    assert split_sections(read_docstring(Bare)) == {}


def test_text_is_wrapped_block_by_block() -> None:
    assert reflow(split_sections(read_docstring(Stars))[""], 24).splitlines() == [
        "Count the `stars` of",
        "each list.",
        "",
        "    stars = Σ s",
        "",
        "A list: it may be",
        "",
        "- long, over two lines;",
        "- short.",
        "",
        "Undefined without stars.",
    ]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (Parameter("k", "a number", "3", "", "", needed=False), "3 by default"),
        (Parameter("k", "text", "", "", "", needed=False), "(empty) by default"),
        (Parameter("k", "text", "", "", "", needed=True), "required"),
    ],
)
def test_default_is_described(row: Parameter, text: str) -> None:
    assert describe_default(row) == text


@pytest.mark.parametrize(("kind", "name"), NAMES, ids=[f"{kind}-{name}" for kind, name in NAMES])
def test_page_has_every_part_of_the_docstring(kind: str, name: str) -> None:
    page = read_page(kind, name)
    sections = split_sections(read_docstring(REGISTRIES[kind].load(name)))
    assert set(sections) <= {"", "Args", "Raises", "Range", "Example", "Source"}
    assert page.summary in " ".join(page.body.split())
    assert [error for error, _ in split_entries(page.errors) if not error.isidentifier()] == []
    assert len(split_entries(sections.get("Args", ""))) == len(page.parameters)


@pytest.mark.parametrize(
    ("name", "met"),
    [
        ("popularity_lift", "no yes no no yes"),
        ("log_popularity_difference", "yes " * 5),
        ("HR", ""),
    ],
)
def test_desiderata_of_a_popularity_bias_metric_are_facts(name: str, met: str) -> None:
    facts = read_page("metrics", name).facts
    desiderata = {title: text for title, text in facts.items() if "Desideratum" in title}
    assert " ".join(desiderata.values()) == met.strip()
    if desiderata:
        assert list(desiderata)[2] == "Desideratum 3 (anti-symmetric)"
