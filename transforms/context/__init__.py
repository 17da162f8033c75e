"""The two formal contexts: which URLs are ranked, and what each of them is about."""
