"""Crawls replayed over a web whose pages are all known, and measures of how good they were."""
