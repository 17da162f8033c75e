"""The rooms of the ranking: each turns Arrow tables into Arrow tables."""
