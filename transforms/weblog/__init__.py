"""From the click log to click counts, click edges between pages and relations between words."""
