from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path

import pytest

from recbias.core.errors import DataError
from recbias.reports.audit_cards import card_files
from recbias.reports.audit_cards.build_card import build_card, digest_files
from recbias.reports.audit_cards.card import Card
from recbias.reports.audit_cards.card_files import (
    check_signature,
    read_card,
    render_card,
    seal_card,
)
from recbias.reports.audit_cards.differences import compare_cards
from recbias.reports.views.run_tables import read_run
from support.run_folders import RunSpec, make_run

KEY = b"0123456789abcdef"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run") / "run", RunSpec(models=("MostPop", "EASE")))


@pytest.fixture(scope="module")
def card(folder: Path) -> Card:
    return build_card(read_run(folder))


def test_the_digest_is_that_of_the_sorted_compact_json(card: Card) -> None:
    """By the standard library, as another program would compute it."""
    content = json.loads(render_card(seal_card(card)))
    digest = content.pop("digest")
    assert content.pop("signature") is None
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert digest == hashlib.sha256(text.encode()).hexdigest()


def test_the_signature_is_the_code_of_the_digest(card: Card) -> None:
    sealed = seal_card(card, KEY)
    assert sealed.signature is not None
    code = hmac.new(KEY, sealed.digest.encode(), hashlib.sha256).hexdigest()
    assert sealed.signature.value == code
    assert check_signature(sealed, KEY) == "valid"
    assert check_signature(sealed, KEY[::-1]) == "wrong"
    assert check_signature(sealed, None) == "not checked"
    assert check_signature(card, KEY) == "absent"
    assert check_signature(card, None) == "none"


def test_a_card_is_read_as_it_was_written(card: Card, tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_text(render_card(seal_card(card, KEY)), encoding="utf-8")
    assert read_card(path) == seal_card(card, KEY)


def test_a_large_or_binary_file_is_no_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "card.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8"):
        read_card(path)
    monkeypatch.setattr(card_files, "MOST_BYTES", 1)
    with pytest.raises(DataError, match="more than 1 bytes"):
        read_card(path)


def test_the_files_of_a_run_outside_of_its_folder_are_not_read(folder: Path) -> None:
    (folder.parent / "secret").write_text("", encoding="utf-8")
    assert [*digest_files(folder, {"files": {"../secret": 0}})] == ["spec.yaml"]
    names = {"metrics.csv": 1, "trials.csv": 1, "absent.csv": 1}
    metrics = hashlib.sha256((folder / "metrics.csv").read_bytes()).hexdigest()
    assert digest_files(folder, {"files": names})["metrics.csv"] == metrics


def test_the_card_has_no_time_and_no_folder_of_the_machine(folder: Path) -> None:
    run = read_run(folder)
    manifest = {**run.manifest, "warnings": ["no file '/home/ann/data/x.csv'"]}
    other = {**manifest, "started": "2030-01-01T00:00:00+00:00", "seconds": 1e6}
    texts = []
    for content in (manifest, other):
        (folder / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
        texts.append(render_card(build_card(read_run(folder))))
    assert texts[0] == texts[1]
    assert "/home/ann" not in texts[0]
    assert ".../x.csv" in texts[0]


def test_differences_are_of_each_entry_whatever_their_order(card: Card) -> None:
    reversed_card = card.model_copy(update={"estimates": card.estimates[::-1]})
    assert compare_cards(card, reversed_card) == []
    first = card.estimates[0]
    changed = first.model_copy(update={"value": (first.value or 0.0) * (1 + 1e-12), "n": 7.0})
    other = card.model_copy(update={"estimates": [changed, *card.estimates[1:]]})
    (difference,) = compare_cards(card, other)
    assert difference == (
        f"estimates: {first.metric} {first.model} ml-1m 42 1: n",
        "200.0",
        "7.0",
    )
    twice = card.model_copy(update={"estimates": [*card.estimates, first]})
    (extra,) = compare_cards(card, twice)
    assert (extra.stated, extra.recomputed) == ("absent", "present")
