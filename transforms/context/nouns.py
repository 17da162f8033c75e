"""Which words are nouns, for keywords that are nouns (P13 Def. 11; EC tags the parts of speech, too).

The Hanover Tagger (Wartena 2019, https://doi.org/10.25968/opus-1527) determines the parts of speech of a single word:
from its frequencies in a tagged corpus or, for a word outside of it, from its morphemes. A word counts as a noun if the
most probable one is that of nouns or names. Sentences are not used: a keyword occurs in many.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

from semrank.schemas.errors import InputError

MODELS: Mapping[str, str] = {
    "de": "morphmodel_ger.pgz",
    "en": "morphmodel_en.pgz",
    "nl": "morphmodel_dutch.pgz",
}
"""Language -> file of the tagger's model."""

_NOUN = "N"
"""First letter of the tags of nouns and names in all tag sets: BNC, STTS and CGN."""


def check_tagger(language: str) -> None:
    """Checks that nouns of a language can be recognized.

    Raises:
        InputError: there is no tagger of the language, or it is not installed.
    """
    if language not in MODELS:
        raise InputError(
            f"--keywords nouns: found --language {language}, expected one that has a tagger: {', '.join(MODELS)}"
        )
    if find_spec("HanTa") is None:
        raise InputError("--keywords nouns: HanTa is missing, which the extra `nouns` installs")


def is_noun(word: str, language: str) -> bool:
    """Whether a word in lower case is a noun or a name; every word of a language without a tagger counts as one."""
    if language not in MODELS:
        return True
    tags = _tagger(language).tag_word(word, casesensitive=False)
    return bool(tags) and tags[0][0].startswith(_NOUN)


@cache
def _tagger(language: str) -> Any:
    from HanTa.HanoverTagger import HanoverTagger

    return HanoverTagger(MODELS[language])
