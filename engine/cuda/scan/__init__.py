"""The selective scan on a GPU: filter columns stream, all others are fetched where rows have passed.

A chunk goes through in four steps, each a module: `chunk_tables` (where its rows are), `loading` (whole
vectors into the GPU's memory), `selection` (which rows pass) and `fetching` (the blocks of those rows, by
commands that the GPU writes). `pipeline` overlaps one chunk's loading with another's fetching. What is kept
between queries (pinned maps of files, queue pairs, the controller) is in `resources`.
"""
