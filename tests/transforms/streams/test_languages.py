from __future__ import annotations

import pytest

from semrank.transforms.streams.languages import language_code


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("en", "en"),
        ("EN-us", "en"),
        ("zh_Hant", "zh"),
        ("eng", "en"),
        ("spa,eng", "es"),
        ("ger", "de"),
        ("deu", "de"),
        ("ast", "ast"),
        ("und", None),
        ("english", None),
        ("x-klingon", None),
        ("", None),
        (None, None),
        ("en_US", "en"),
        ("zh-Hant-TW", "zh"),
        ("eng,deu", "en"),
        ("de; q=0.9", "de"),
        ("iw", "he"),
        ("haw", "haw"),
        ("mul", None),
        ("unknown", None),
        ("日本語", None),
        ("12", None),
        ("german", None),
        ("fre-CA", "fr"),
        ("chi", "zh"),
        ("eng\0ype", None),
        ("e\x1bn", None),
    ],
)
def test_codes(tag: str | None, code: str | None) -> None:
    assert language_code(tag) == code


def test_bibliographic_codes_are_those_of_the_terminological_ones() -> None:
    pairs = {"alb": "sqi", "cze": "ces", "dut": "nld", "fre": "fra", "ger": "deu", "rum": "ron", "wel": "cym"}
    for bibliographic, terminological in pairs.items():
        assert language_code(bibliographic) == language_code(terminological)
