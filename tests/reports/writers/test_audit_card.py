from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from recbias.reports.audit_cards import card_tables
from recbias.reports.audit_cards.build_card import build_card
from recbias.reports.audit_cards.card import Card
from recbias.reports.audit_cards.card_files import seal_card
from recbias.reports.views.run_tables import read_run
from recbias.reports.writers.audit_card import render_card_files, render_card_page
from support.run_folders import HOSTILE, RunSpec, make_run


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Card:
    folder = tmp_path_factory.mktemp("run") / "run"
    return seal_card(build_card(read_run(make_run(folder, RunSpec(models=HOSTILE)))))


class Tags(HTMLParser):
    """The names of all elements of a page, and the addresses in it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href"}]


def test_labels_of_an_untrusted_card_are_text(card: Card) -> None:
    tags = Tags()
    tags.feed(page := render_card_page(card, "html"))
    assert not tags.names & {"script", "iframe", "img", "a", "form"}
    assert tags.addresses == ["data:,"]
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    markdown = render_card_page(card, "md")
    assert "<script>" not in markdown
    assert not re.search(r"(?<!\\)\]\(http", markdown)


def test_the_page_has_what_was_audited_on_whom_and_what_was_found(card: Card) -> None:
    pages = dict(render_card_files(card))
    assert [*pages] == ["card.json", "card.md", "card.html"]
    headings = re.findall(r"^## (.*)", pages["card.md"], flags=re.MULTILINE)
    expected = ["What was audited", "On whom", "Estimates", "Comparisons", "Definitions"]
    assert headings == [*expected, "Limits", "Seal"]
    assert card.digest in pages["card.md"]
    assert card.digest in pages["card.html"]


def test_a_long_table_says_how_many_rows_are_in_the_file(card: Card) -> None:
    many = card.model_copy(update={"estimates": card.estimates * 10})
    table = card_tables.tabulate_estimates(many)
    assert len(table.rows) == card_tables.MOST_LINES
    more = len(many.estimates) - card_tables.MOST_LINES
    assert table.notes == (f"{more:,} more rows in card.json.",)
    assert Path("card.json").suffix in table.notes[0]


def test_limits_name_undefined_values_and_smoke_tests(card: Card) -> None:
    limits = card.limits.model_copy(
        update={"undefined": {"nDCG@10": 3.0}, "omitted_estimates": 2, "warnings": ["few users"]}
    )
    audited = card.audited.model_copy(update={"limit": 200})
    changed = card.model_copy(update={"limits": limits, "audited": audited})
    assert card_tables.list_limits(changed) == [
        "Smoke test: the first 200 queries only.",
        "few users",
        "Undefined values, excluded from the means: nDCG@10 3.",
        "2 estimates of a target: only in metrics.csv.",
    ]
