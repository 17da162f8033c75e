"""Batch recrawl ranking on Apache Beam: crawl snapshot and click log in, ranked frontier out.

`rank` and `rounds` do what the commands of these names do, `read_round` reads a finished round, and `RankUrls` is a
round as a PTransform. They are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semrank.pipelines import __version__
    from semrank.pipelines.library import InputError, RankUrls, Round, finish_round, read_round
    from semrank.pipelines.library import rank_round as rank
    from semrank.pipelines.library import rank_rounds as rounds

_LIBRARY = "semrank.pipelines.library"
_NAMES = {
    "InputError": (_LIBRARY, "InputError"),
    "RankUrls": (_LIBRARY, "RankUrls"),
    "Round": (_LIBRARY, "Round"),
    "finish_round": (_LIBRARY, "finish_round"),
    "rank": (_LIBRARY, "rank_round"),
    "read_round": (_LIBRARY, "read_round"),
    "rounds": (_LIBRARY, "rank_rounds"),
    "__version__": ("semrank.pipelines", "__version__"),
}
"""Name -> module and name where it is defined. Beam takes a second to import, which `semrank --help` need not pay."""

__all__ = ["InputError", "RankUrls", "Round", "__version__", "finish_round", "rank", "read_round", "rounds"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _NAMES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
