"""Readers of crawl formats and tables, and the snapshot that is made of them and of the clicks."""
