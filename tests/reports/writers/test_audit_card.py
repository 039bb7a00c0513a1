from __future__ import annotations

import hashlib
import hmac
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from recbias.core.errors import DataError
from recbias.reports.views.run_tables import read_run
from recbias.reports.writers.audit_card import (
    MOST_LINES,
    Card,
    build_card,
    check_signature,
    digest_files,
    read_card,
    render_card_files,
    render_card_page,
)
from support.run_folders import HOSTILE, RunSpec, make_run

KEY = b"0123456789abcdef"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run") / "run", RunSpec(models=HOSTILE))


@pytest.fixture(scope="module")
def card(folder: Path) -> Card:
    return build_card(read_run(folder))


class Tags(HTMLParser):
    """The names of all elements of a page, and the addresses in it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href"}]


def get_lines(card: Card) -> list[str]:
    return render_card_page(card, "md").splitlines()


def test_labels_of_a_card_are_text(card: Card) -> None:
    tags = Tags()
    tags.feed(page := render_card_page(card, "html"))
    assert not tags.names & {"script", "iframe", "img", "a", "form"}
    assert tags.addresses == ["data:,"]
    assert "default-src 'none'" in page
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
    more = len(many.estimates) - MOST_LINES
    assert f"{more:,} more rows in card.json." in get_lines(many)


def test_limits_name_undefined_values_and_smoke_tests(card: Card) -> None:
    changes = {"undefined": {"nDCG@10": 3.0}, "omitted_estimates": 2, "warnings": ["few users"]}
    limits, audited = card.limits | changes, card.audited | {"limit": 200}
    lines = get_lines(card.model_copy(update={"limits": limits, "audited": audited}))
    assert lines[lines.index("## Limits") + 2 :][:4] == [
        "- Smoke test: the first 200 queries only.",
        "- few users",
        "- Undefined values, excluded from the means: nDCG@10 3.",
        "- 2 estimates of a target: only in metrics.csv.",
    ]


def test_an_interval_that_does_not_hold_its_value_is_explained(card: Card) -> None:
    assert "An interval without the value" not in render_card_page(card, "md")
    first = card.estimates[0] | {"value": 0.4, "ci_low": 0.5, "ci_high": 0.6}
    moved = card.model_copy(update={"estimates": [first, *card.estimates[1:]]})
    assert "An interval without the value" in render_card_page(moved, "md")


def test_checks_begin_with_their_verdict_and_are_counted_first(card: Card) -> None:
    place = dict.fromkeys(("dataset", "group", "target", "baseline"), "")
    check = {**place, "model": "EASE", "metric": "nDCG@10", "value": 0.2, "ci_low": 0.1}
    check["ci_high"] = 0.3
    checks = [
        {**check, "line": "at least 0.1", "verdict": "undecided", "failed": False},
        {**check, "line": "at most 0.1", "verdict": "fail", "failed": True},
    ]
    lines = get_lines(card.model_copy(update={"checks": checks}))
    assert "- Checks: 1 fail, 1 undecided, 0 pass" in lines
    start = lines.index("## Checks") + 2
    assert lines[start] == "| verdict | metric | model | line | value | 95% interval |"
    assert [line.split(" | ")[0] for line in lines[start + 2 :][:2]] == ["| fail", "| undecided"]
    assert "## Checks" not in get_lines(card)


def test_the_digest_is_that_of_the_sorted_compact_json(card: Card) -> None:
    """By the standard library, as another program would compute it."""
    content = json.loads(dict(render_card_files(card))["card.json"])
    digest = content.pop("digest")
    assert content.pop("signature") is None
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert digest == hashlib.sha256(text.encode()).hexdigest()


def test_the_signature_is_the_code_of_the_digest(folder: Path, card: Card) -> None:
    sealed = build_card(read_run(folder), KEY)
    assert sealed.signature is not None
    assert sealed.digest == card.digest
    code = hmac.new(KEY, sealed.digest.encode(), hashlib.sha256).hexdigest()
    assert sealed.signature["value"] == code
    assert check_signature(sealed, KEY) == "valid"
    assert check_signature(sealed, KEY[::-1]) == "wrong"
    assert check_signature(sealed, None) == "not checked"
    assert check_signature(card, KEY) == "absent"
    assert check_signature(card, None) == "none"


def test_a_card_is_read_as_it_was_written(folder: Path, tmp_path: Path) -> None:
    sealed, path = build_card(read_run(folder), KEY), tmp_path / "card.json"
    path.write_text(dict(render_card_files(sealed))["card.json"], encoding="utf-8")
    assert read_card(path) == sealed
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8"):
        read_card(path)


def test_files_with_durations_or_outside_of_the_folder_have_no_digest(folder: Path) -> None:
    (folder.parent / "secret").write_text("", encoding="utf-8")
    (folder / "trials.csv").write_text("", encoding="utf-8")
    names = {"metrics.csv": 1, "trials.csv": 1, "absent.csv": 1, "../secret": 0}
    digests = digest_files(folder, names)
    assert [*digests] == ["metrics.csv", "spec.yaml"]
    metrics = hashlib.sha256((folder / "metrics.csv").read_bytes()).hexdigest()
    assert digests["metrics.csv"] == metrics
    (folder / "trials.csv").unlink()


def test_the_card_has_no_time_and_no_folder_of_the_machine(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    manifest = {**read_run(folder).manifest, "warnings": ["no file '/home/ann/data/x.csv'"]}
    other = {**manifest, "started": "2030-01-01T00:00:00+00:00", "seconds": 1e6}
    texts = []
    for content in (manifest, other):
        (folder / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
        texts.append(dict(render_card_files(build_card(read_run(folder))))["card.json"])
    assert texts[0] == texts[1]
    assert "/home/ann" not in texts[0]
    assert ".../x.csv" in texts[0]
