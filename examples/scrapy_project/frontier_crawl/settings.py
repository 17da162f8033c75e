"""Settings of the project; Scrapy's documentation explains each, `-s NAME=VALUE` sets one for a single crawl."""

BOT_NAME = "frontier-crawl"
SPIDER_MODULES = ["frontier_crawl.spiders"]

USER_AGENT = "frontier-crawl (put an address here where you can be reached)"
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1.0

# WARC next to the downloader, where answers are as they came: compressed, and before redirects are followed.
DOWNLOADER_MIDDLEWARES = {
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "frontier_crawl.robots.OrderedRobotsMiddleware": 100,
    "frontier_crawl.warc.WarcMiddleware": 999,
}

# The frontier has no URL longer than its crawl found; the limit would drop some of them without a trace in the WARC.
URLLENGTH_LIMIT = 0

TELNETCONSOLE_ENABLED = False
LOG_LEVEL = "INFO"
