"""A Scrapy project that fetches an exported frontier and writes WARC."""
