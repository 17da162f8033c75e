"""The frontier as files that crawlers take, one module a target.

A target's module has `lines`, a generator that turns tables of `EXPORTED` into arrays of lines (no line end), in the
same order. What a crawler would misread is found before that, by `rows.find_faults`.
"""
