"""The project's package: settings, the spider, and a middleware that writes WARC."""
