"""Referrer spam: visits that never were, made to put an advertiser's address into a site's statistics."""

from __future__ import annotations

SPAM_DOMAINS = frozenset(
    {
        *("semalt.com", "buttons-for-website.com", "buttons-for-your-website.com", "make-money-online.com"),
        *("best-seo-offer.com", "best-seo-solution.com", "100dollars-seo.com", "get-free-traffic-now.com"),
        *("darodar.com", "ilovevitaly.com", "ilovevitaly.co", "priceg.com", "blackhatworth.com", "hulfingtonpost.com"),
        *("cenoval.ru", "o-o-6-o-o.com", "econom.co", "social-buttons.com", "simple-share-buttons.com"),
        *("free-share-buttons.com", "event-tracking.com", "free-social-buttons.com", "googlsucks.com"),
        *("success-seo.com", "videos-for-your-business.com", "trafficmonetize.org", "trafficmonetizer.org"),
        *("4webmasters.org", "webmonetizer.net", "guardlink.org", "floating-share-buttons.com"),
        *("site-auditor.online", "rank-checker.online", "monetizationking.net"),
    }
)
"""Domains of the waves that are documented since 2013; sites meet new ones daily, so users add theirs.

No package index holds a maintained list, so these are few and the option `--spam-domain` is the way to more.
"""


def is_spam_host(host: str, domains: frozenset[str]) -> bool:
    """Whether a host is one of the domains or below one."""
    labels = host.split(".")
    return any(".".join(labels[at:]) in domains for at in range(len(labels) - 1))
