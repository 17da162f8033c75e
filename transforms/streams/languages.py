"""Language tags of many spellings brought to one: the ISO 639 code, the key by which texts are analysed."""

from __future__ import annotations

import re
from functools import lru_cache

from icu4py.locale import Locale

MAX_TAG_CHARS = 200
"""Characters of a tag, or of a list of tags, that are looked at."""

# What ICU leaves: ISO 639-2's bibliographic codes, which stand beside the terminological ones that it knows.
_BIBLIOGRAPHIC = {
    **{"alb": "sq", "arm": "hy", "baq": "eu", "bur": "my", "chi": "zh", "cze": "cs", "dut": "nl", "fre": "fr"},
    **{"geo": "ka", "ger": "de", "gre": "el", "ice": "is", "mac": "mk", "mao": "mi", "may": "ms", "per": "fa"},
    **{"rum": "ro", "slo": "sk", "tib": "bo", "wel": "cy"},
}
_SUCCESSORS = {"in": "id", "iw": "he", "ji": "yi", "mo": "ro"} | _BIBLIOGRAPHIC
_NO_LANGUAGE = frozenset(["mis", "mul", "und", "zxx"])
_CODE = re.compile("[a-z]{2,3}")
_END = re.compile(r"[,;\s]")


@lru_cache(maxsize=4096)
def language_code(tag: str | None) -> str | None:
    """The ISO 639 code, of two letters where there is one, of a language tag; None where the tag names no language.

    A list ("eng,deu") stands for its first member; scripts and regions are left out ("zh-Hant-TW": "zh").
    """
    first = _END.split((tag or "")[:MAX_TAG_CHARS].strip(), maxsplit=1)[0]
    if not (first.isascii() and first.isprintable()):  # ICU refuses NUL
        return None
    code = Locale(first).language
    if _CODE.fullmatch(code) is None or code in _NO_LANGUAGE:
        return None
    return _SUCCESSORS.get(code, code)
