from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from recbias.reports.audit_cards import card_facts, card_tables
from recbias.reports.audit_cards.build_card import build_card
from recbias.reports.audit_cards.card import Card, CheckPart
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
    assert table.notes[0] == f"{more:,} more rows in card.json."


def test_limits_name_undefined_values_and_smoke_tests(card: Card) -> None:
    limits = card.limits.model_copy(
        update={"undefined": {"nDCG@10": 3.0}, "omitted_estimates": 2, "warnings": ["few users"]}
    )
    audited = card.audited.model_copy(update={"limit": 200})
    changed = card.model_copy(update={"limits": limits, "audited": audited})
    assert card_facts.list_limits(changed) == [
        "Smoke test: the first 200 queries only.",
        "few users",
        "Undefined values, excluded from the means: nDCG@10 3.",
        "2 estimates of a target: only in metrics.csv.",
        card_facts.COVERED,
    ]


def test_an_interval_that_does_not_hold_its_value_is_explained(card: Card) -> None:
    notes = " ".join(card_tables.tabulate_estimates(card).notes)
    assert "An interval without the value" not in notes
    first = card.estimates[0].model_copy(update={"value": 0.4, "ci_low": 0.5, "ci_high": 0.6})
    moved = card.model_copy(update={"estimates": [first, *card.estimates[1:]]})
    assert "An interval without the value" in card_tables.tabulate_estimates(moved).notes[-1]


def test_checks_begin_with_their_verdict_and_are_counted_first(card: Card) -> None:
    place: dict[str, Any] = {
        "dataset": "d",
        "model": "EASE",
        "group": "",
        "target": "",
        "baseline": "",
    }
    check: dict[str, Any] = {
        **place,
        "metric": "nDCG@10",
        "value": 0.2,
        "ci_low": 0.1,
        "ci_high": 0.3,
    }
    parts = [
        CheckPart(**check, line="at least 0.1", verdict="undecided", failed=False),
        CheckPart(**check, line="at most 0.1", verdict="fail", failed=True),
    ]
    checked = card.model_copy(update={"checks": parts})
    table = card_tables.tabulate_checks(checked)
    titles = [column.title for column in table.columns]
    assert titles == ["verdict", "metric", "model", "line", "value", "95% interval"]
    assert [row[0].text for row in table.rows] == ["fail", "undecided"]
    assert table.notes[0].startswith("1 fail, 1 undecided, 0 pass. ")
    facts = dict(card_facts.describe_subject(checked))
    assert facts["Checks"] == "1 fail, 1 undecided, 0 pass"
    assert card_tables.tabulate_checks(card).notes == ()
