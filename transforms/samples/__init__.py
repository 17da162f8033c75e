"""Webs to try the product on: the sample web, Wikispeedia, the manuals of a distribution."""
