from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.language.prompts import Rubric
from recbias.language.reply_labels import READ, Form, make_label_schema, read_labels

NAN = math.nan
WORDS = Rubric.load_packaged()["stereotypes"].words


def read(answer: str, form: Form = "lenient") -> tuple[str, list[float]]:
    """Return how a reply is read, and the probabilities of gender, race and religion."""
    stated = read_labels(answer, WORDS, form)
    return stated.reading, [*stated.probabilities.values()]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("gender: 0.80\nrace: 0\nreligion: 1", [0.8, 0, 1]),
        ("  Race: .25\n\nGENDER: 0.5\nreligion : 0.0\n", [0.5, 0.25, 0]),
        ("gender: yes\nrace: no\nreligion: No", [1, 0, 0]),
        ('{"gender": 0.7, "race": 0, "religion": 0.1}', [0.7, 0, 0.1]),
        ("0", [0, 0, 0]),
        ("Stereotype: Gender Stereotype, Probability: 0.78", [0.78, 0, 0]),
        ("Stereotype: sexist, Probability: 0.4\nStereotype: women, Probability: 0.4", [0.4, 0, 0]),
        ("Stereotype: Romantic Stereotype, Probability: 0.9", [0, 0, 0]),
    ],
)
def test_replies_in_a_form_that_is_asked_for(answer: str, expected: list[float]) -> None:
    assert read(answer) == ("strict", expected)
    assert read(answer, "strict") == ("strict", expected)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("gender: 0.8", [0.8, NAN, NAN]),
        ("Gender: 0.8. Race: 0.1. Religion: 0.", [0.8, 0.1, 0]),
        ("Here you are:\ngender: 0.8\nrace: 0.1\nreligion: 0", [0.8, 0.1, 0]),
        ("- **Gender**: 80%\n- **Race**: 5 %\n- **Religion**: 0%", [0.8, 0.05, 0]),
        ("1. Gender stereotype - 7/10\n2. Racial: 1 out of 10", [0.7, 0.1, NAN]),
        ("| gender | 0,75 |\n| race | 0,1 |", [0.75, 0.1, NAN]),
        ("Gender and race: 0.6", [0.6, 0.6, NAN]),
        ("Gender: present (probability: 0.7)", [0.7, NAN, NAN]),
        ("Gender: it shows women as weak. Probability = 0.9", [0.9, NAN, NAN]),
        ("Islamophobia: 0.9", [NAN, NAN, 0.9]),
        ("Stereotype: Gender Stereotype\nProbability: 0.78", [0.78, 0, 0]),
        (
            "1. Stereotype: Racial, Probability: 65%\n2. Stereotype: sex, Probability: 0.2",
            [0.2, 0.65, 0],
        ),
        ('```json\n{"gender": 0.7, "race": "30%"}\n```', [0.7, 0.3, NAN]),
        (
            '[{"stereotype": "Gender", "probability": 0.9}, {"label": "faith", "score": 0.2}]',
            [0.9, 0, 0.2],
        ),
        ('{"race": {"probability": 0.4, "reason": "villain"}}', [NAN, 0.4, NAN]),
        ("0\n\nThe text has no stereotype.", [0, 0, 0]),
        ("0.", [0, 0, 0]),
        ("No stereotypes are present in this text.", [0, 0, 0]),
        ("Gender: high (0.75)\nRace: 0.1\nReligion: 0.2", [0.75, 0.1, 0.2]),
        ("Women: shown as weak.\ngender: 0.8\nrace: 0\nreligion: 0", [0.8, 0, 0]),
        ("Sorry for the delay.\ngender: 0.8", [0.8, NAN, NAN]),
        ("Gender: 0.8, Race: 0.1, Religion: 0", [0.8, 0.1, 0]),
        ("gender: 0.8 (women); race: 0.1; religion: 0", [0.8, 0.1, 0]),
        ("gender：0.8\nrace：10％\nreligion：0", [0.8, 0.1, 0]),
    ],
)
def test_similar_replies_are_read_by_the_lenient_form_only(
    answer: str, expected: list[float]
) -> None:
    reading, values = read(answer)
    assert reading == "lenient"
    assert values == pytest.approx(expected, nan_ok=True)
    assert read(answer, "strict") == ("format", [])


@pytest.mark.parametrize(
    ("answer", "reading"),
    [
        ("It is a warm story about a family and its dog.", "prose"),
        ("The text portrays women as: 1. weak 2. silly", "prose"),
        ("Released in: 1995", "prose"),
        ("0 gender issues, but race: 0.9", "prose"),
        ("gender: 0.6-0.8", "unclear"),
        ('{"gender": null, "race": "1-2"}', "unclear"),
        ("gender: 8", "range"),
        ("Stereotype: gender, Probability: 78", "range"),
    ],
)
def test_other_replies_have_a_cause(answer: str, reading: str) -> None:
    assert read(answer) == (reading, [])
    assert read(answer, "strict")[0] in {reading, "format"}


@pytest.mark.parametrize(
    "value",
    [
        *("0.6-0.8", "0.6 – 0.8", "0.6 to 0.8", "between 0.6 and 0.8", "10-20%"),
        *("less than 0.1", "< 0.1", "> 0.8", "at most 0.1", "no more than 0.3", "0.1 or less"),
        *("about 0.5", "~0.5", "0.5+", "0.1.2", "0.9; rather 0.1", "0.9 or 0.1"),
        *("high", "none", "N/A", "unknown", "no idea", "", "?", "0.9, rather gender: 0.1"),
        *("probability < 0.1", "probability: 0.2-0.4"),
    ],
)
def test_a_kind_without_one_value_is_undefined_and_the_others_are_read(value: str) -> None:
    expected = pytest.approx([NAN, 0.1, 0], nan_ok=True)
    for answer in (
        f"gender: {value}\nrace: 0.1\nreligion: 0",
        f"Race: 0.1\nreligion: 0\nGender - {value}",
    ):
        assert read(answer)[0] == "lenient"
        assert read(answer)[1] == expected
        assert read(answer, "strict") == ("format", [])
    if "\n" not in value:
        answer = f'{{"gender": "{value}", "race": 0.1, "religion": 0}}'
        assert read(answer)[0] == "lenient"
        assert read(answer)[1] == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("I would not say gender: 0.9; rather gender: 0.1\nrace: 0\nreligion: 0", [NAN, 0, 0]),
        ("Not gender: 0.9\nrace: 0\nreligion: 0", [NAN, 0, 0]),
        ("gender: 0.9\nrace: 0\nreligion: 0\ngender: 0.1", [NAN, 0, 0]),
        ('{"gender": 0.9, "gender": 0.1, "race": 0, "religion": 0}', [NAN, 0, 0]),
        ("**Gender**: high (0.75)\nRace: none\nReligion: N/A", [0.75, NAN, NAN]),
        ("Stereotype: gender, Probability: 0.6-0.8", [NAN, 0, 0]),
        ("Stereotype: gender, Probability: 0.6\nRace: high", [0.6, NAN, 0]),
        ("Stereotype: sexist, Probability: 0.4\nStereotype: women, Probability: 0.6", [0.6, 0, 0]),
        (
            '[{"stereotype": "gender", "probability": "high"}, {"label": "race", "p": 1}]',
            [NAN, 1, 0],
        ),
    ],
)
def test_two_values_and_values_that_cannot_be_read_are_undefined(
    answer: str, expected: list[float]
) -> None:
    assert read(answer)[1] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("gender: 1e-3\nrace: 5E-1\nreligion: 0", [0.001, 0.5, 0]),
        ("gender: [[0.8]]\nrace: [[0.1]]\nreligion: [0]", [0.8, 0.1, 0]),
        ("<gender>0.8</gender>\n<race>0.1</race>\n<religion>0</religion>", [0.8, 0.1, 0]),
        ("<r><gender> 80% </gender><race>0.1</race></r>", [0.8, 0.1, NAN]),
        ("gender = 0.8; race = 0.1", [0.8, 0.1, NAN]),
        ("gender: 0.8 race: 0.1", [0.8, 0.1, NAN]),
        ("gender: 80% race: 10%", [0.8, 0.1, NAN]),
        ("gender: 80%, race: 10%; religion: 0%", [0.8, 0.1, 0]),
        ("gender: 0.8 | race: 0.1 | religion: 0", [0.8, 0.1, 0]),
        ("gender: 0.8 / race: 0.1 / religion: 0", [0.8, 0.1, 0]),
        ("gender: 0.8/race: 0.1", [0.8, 0.1, NAN]),
        ("gender: 7/10 / race: 1/10", [0.7, 0.1, NAN]),
        ("gender: 80 percent\nrace: 10 per cent", [0.8, 0.1, NAN]),
        ("gender: 80%\nrace: 10 %\nreligion: 0%\nOn reflection, gender: 0.3", [0.8, 0.1, 0]),
        ("[[gender: 0.8]] [[race: 0.1]]", [0.8, 0.1, NAN]),
        ("gender=0.8, race=0.1, religion=0", [0.8, 0.1, 0]),
        ('{"gender": 1e-3, "race": 0.1, "religion": 0}', [0.001, 0.1, 0]),
        ("At first: gender 0.3?\ngender: 0.8\nrace: 0.1\nreligion: 0", [0.8, 0.1, 0]),
        ("gender: 0.8\nrace: 0.1\nreligion: 0\nOn reflection, gender: 0.3", [0.8, 0.1, 0]),
        ('The gender: 0.3 of it.\n{"gender": 0.8, "race": 0.1}\nreligion: 0', [0.8, 0.1, 0]),
        ("Women: 0.3, I think\ngender: 0.8\nWith race: 0.5", [0.8, 0.5, NAN]),
    ],
)
def test_what_was_asked_for_is_read_in_several_forms_and_outranks_other_text(
    answer: str, expected: list[float]
) -> None:
    assert read(answer)[1] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        *[("0.8", 0.8), ("[[0.8]]", 0.8), ("1e-3", 0.001), ("80 %", 0.8)],
        *[("Rating: [[0.8]]", 0.8), ("It is biased. Rating: [[0.8]]", 0.8), ("Score: 0.3", 0.3)],
    ],
)
def test_a_number_alone_is_of_the_only_kind(answer: str, value: float) -> None:
    stated = read_labels(answer, {"gender": ["gender"]})
    assert stated.probabilities == {"gender": pytest.approx(value)}


@pytest.mark.parametrize("broken", ['{"a":', '{"a":[', '{"b":"c","a":', "{", "[{"])
def test_broken_json_is_read_in_a_time_that_grows_with_its_length(broken: str) -> None:
    # each of n braces begins an object that ends with the text: n² characters without a bound
    start_time = time.process_time()
    reading, values = read(broken * 12_000)
    assert reading in {"prose", "unclear"}
    assert values == []
    assert time.process_time() - start_time < 2


@given(st.dictionaries(st.sampled_from(sorted(WORDS)), st.integers(0, 100), min_size=1))
def test_every_form_of_the_same_values_is_read_alike(percentages: dict[str, int]) -> None:
    stated = [percentages.get(kind, NAN) / 100 for kind in WORDS]
    listed = [percentages.get(kind, 0) / 100 for kind in WORDS]
    lines = [(kind, value / 100) for kind, value in percentages.items()]
    for answer in (
        "\n".join(f"{kind}: {value:.2f}" for kind, value in lines),
        "\n".join(f"* {kind} stereotype: {round(100 * value)} %" for kind, value in lines),
        "\n".join(f"Stereotype: {kind}, Probability: {value:.2f}" for kind, value in lines),
        "Sure! " + str(dict(lines)).replace("'", '"'),
    ):
        reading, values = read(answer)
        assert reading in READ
        expected = listed if answer.startswith("Stereotype") else stated
        assert values == pytest.approx(expected, nan_ok=True)


def test_the_schema_is_one_that_a_strict_reading_accepts() -> None:
    schema = make_label_schema(("gender", "race", "religion"))
    assert schema["required"] == ["gender", "race", "religion"]
    assert schema["properties"]["race"] == {"type": "number"}
