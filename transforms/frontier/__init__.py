"""The ranked frontier: total order, threshold and budgets, and the files that crawlers take."""
