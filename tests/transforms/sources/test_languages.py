from __future__ import annotations

import pytest

from semrank.transforms.sources.languages import language_code


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
    ],
)
def test_codes(tag: str | None, code: str | None) -> None:
    assert language_code(tag) == code
