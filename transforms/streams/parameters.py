"""Parameters of URLs that name a visit and never a page: which are taken out of URLs.

Names of tracking parameters are exact: a parameter with a similar name (`pk_product`, a primary key) may tell
pages apart. They are those of the vendors' own documents and of the lists that Firefox (query stripping), Brave and
ClearURLs maintain. Names of sessions that sites also use for other things (`sid`, `session_id`) count by the form of
their value. All of this holds in queries and behind `;` in paths.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple
from urllib.parse import unquote_plus

_TRACKING = """
utm_source utm_medium utm_campaign utm_term utm_content utm_id utm_source_platform utm_creative_format
utm_marketing_tactic utm_name utm_cid utm_reader utm_referrer utm_social utm_social-type utm_viz_id utm_pubreferrer
utm_swu utm_brand utm_place utm_userid utm_email utm_int utm_campaignid utm_adgroup utm_keyword utm_expid utm_hp_ref
mtm_campaign mtm_kwd mtm_keyword mtm_source mtm_medium mtm_content mtm_cid mtm_group mtm_placement
matomo_campaign matomo_kwd matomo_keyword matomo_source matomo_medium matomo_content matomo_cid matomo_group
matomo_placement piwik_campaign piwik_kwd piwik_keyword
pk_campaign pk_cpn pk_kwd pk_keyword pk_source pk_medium pk_content pk_cid pk_group pk_placement
hsa_acc hsa_ad hsa_cam hsa_grp hsa_kw hsa_la hsa_mt hsa_net hsa_ol hsa_src hsa_tgt hsa_ver
gclid gclsrc dclid gbraid wbraid gad_source gad_campaignid srsltid
fbclid igshid igsh msclkid twclid ttclid li_fat_id epik rdt_cid scclid
yclid ysclid _openstat zanpid irclickid rb_clickid wickedid s_kwcid ef_id
mc_cid mc_eid mkt_tok oly_anon_id oly_enc_id vero_id vero_conv ml_subscriber ml_subscriber_hash
_hsenc _hsmi __hssc __hstc __hsfp hsctatracking dm_i _bta_tid
_ga _gl _ke _kx __s
"""
# By line: Google Analytics (two lines), Matomo (four), HubSpot Ads, click ids of advertising networks (three), ids that
# mail and marketing automation appends (two), ids of analytics that travel between domains.
TRACKING_PARAMETERS = frozenset(_TRACKING.split())
"""Parameters that contain where a visitor came from, in lower case."""

_SESSIONS = """
jsessionid phpsessid aspsessionid asp.net_sessionid cfid cftoken zenid oscsid xtcsid bv_sessionid bv_engineid ci_session
"""
SESSION_PARAMETERS = frozenset(_SESSIONS.split())
"""Parameters that hold a visitor's session on common servers (Java, PHP, ASP, ColdFusion, shops), in lower case."""

AMBIGUOUS_SESSION_PARAMETERS = frozenset(
    {"sid", "s", "session", "ssid", "sess", "sessionid", "session_id", "sessid", "sess_id", "psession"}
)
"""Parameters that hold a session on some sites and a story, a talk or a section on others: the value decides.

They go when the value looks drawn at random: `SESSION_TOKEN`.
"""

SESSION_TOKEN = re.compile(
    r"(?=[^0-9]*+[0-9])(?=[^A-Za-z]*+[A-Za-z])"
    r"(?:[0-9a-f]{12,}+|[0-9A-F]{12,}+|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
    r"|(?=[A-Za-z]*+[0-9]++[A-Za-z]++[0-9])[0-9A-Za-z]{16,}+"
    r"|(?=[^A-Z]*+[A-Z])(?=[^a-z]*+[a-z])[0-9A-Za-z,-]{22,}+)"
)
"""Letters and digits: 12 hexadecimal ones, a UUID, 16 in turns, or 22 in both cases with `,` and `-` (as PHP has).

`sid=1234`, `sid=news`, `session_id=CON1204` and `s=phone-15-review` stay, `sid=9f86d081884c` goes.
"""

_BEHIND_SEMICOLON = re.compile(r";([^;/?&]*)")
_ENCODED_EQUALS = re.compile("%3d", re.IGNORECASE)
_ASP_SESSION_NAME = re.compile(r"aspsessionid[a-z]{8}")


class ParameterRules(NamedTuple):
    """What a user knows of the parameters of a crawl's sites, names in lower case.

    Attributes:
        keep: parameters that tell pages apart, whatever their names.
        drop: further parameters that don't.
    """

    keep: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()

    @classmethod
    def of(cls, keep: Iterable[str], drop: Iterable[str]) -> ParameterRules:
        """The rules of names in any case."""
        return cls(frozenset(map(str.lower, keep)), frozenset(map(str.lower, drop)))


class _State(threading.local):
    lost = 0


NO_RULES = ParameterRules()

_state = _State()


def urls_that_lost_parameters() -> int:
    """How often a URL lost a parameter in this thread so far."""
    return _state.lost


def count_lost(urls: int) -> None:
    """Counts URLs that lost a parameter in another process for this thread."""
    _state.lost += urls


def without_noise(url: str, rules: ParameterRules) -> str:
    """A URL without session ids, tracking parameters and empty ones, of its query and behind `;` in its path."""
    bare = _BEHIND_SEMICOLON.sub(partial(_kept, rules=rules), url) if ";" in url else url
    head, _, query = bare.partition("?")
    pairs = [pair for pair in query.split("&") if pair]
    kept = [_without_head(pair, rules) for pair in pairs]
    if bare != url or kept != pairs:
        _state.lost += 1
    query = "&".join(filter(None, kept))
    return f"{head}?{query}" if query else head


def _kept(found: re.Match[str], rules: ParameterRules) -> str:
    return "" if _is_noise(_ENCODED_EQUALS.sub("=", found[1], count=1), rules) else found[0]


def _without_head(pair: str, rules: ParameterRules) -> str:
    """A pair without what is noise in it; some sites part pairs by `;`, behind which further ones are kept."""
    while pair and _is_noise(pair.partition(";")[0], rules):
        pair = pair.partition(";")[2]
    return pair


def _is_noise(pair: str, rules: ParameterRules) -> bool:
    name, _, value = pair.partition("=")
    name = (unquote_plus(name) if "%" in name or "+" in name else name).lower()
    if name in rules.keep:
        return False
    if name in TRACKING_PARAMETERS or name in SESSION_PARAMETERS or name in rules.drop:
        return True
    if name in AMBIGUOUS_SESSION_PARAMETERS:
        return SESSION_TOKEN.fullmatch(value) is not None
    return _ASP_SESSION_NAME.fullmatch(name) is not None
