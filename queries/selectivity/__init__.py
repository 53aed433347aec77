"""How fast each way of fetching columns is by the share of rows that match: `bamquery taxi selectivity`.

In go tables of the same rows in several orders; out come a time for each share and strategy, and which one
the engine chooses.
"""
