"""``card.json``, ``card.md`` and ``card.html``: the audit card of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recbias.reports.audit_cards import card_facts, card_tables
from recbias.reports.audit_cards.card import Card
from recbias.reports.audit_cards.card_files import render_card
from recbias.reports.markup import Safe
from recbias.reports.writers.jinja_environments import read_resource, render

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
"""The content security policy of the page: it loads nothing and has no script."""


def render_card_files(card: Card) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each file of a card."""
    yield "card.json", render_card(card)
    yield "card.md", render_card_page(card, "md")
    yield "card.html", render_card_page(card, "html")


def render_card_page(card: Card, kind: str) -> str:
    """Return the page of a card as ``html`` or ``md``; everything from the card is escaped."""
    text = render(
        f"card.{kind}.jinja",
        card=card,
        policy=_POLICY,
        style=Safe(read_resource("page.css")),
        sections={
            "What was audited": card_facts.describe_subject(card),
            "On whom": card_facts.describe_people(card),
        },
        tables=[
            table
            for tabulate in (
                card_tables.tabulate_checks,
                card_tables.tabulate_estimates,
                card_tables.tabulate_comparisons,
                card_tables.tabulate_definitions,
            )
            if (table := tabulate(card)).rows
        ],
        limits=card_facts.list_limits(card),
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"
