"""Readers of crawl and log formats: any input becomes conformed Arrow tables, rejects and a balance of records."""
