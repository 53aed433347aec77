"""Answers for people, programs and files: what the command line and the shell write them by.

In come relations' batches and `DisplayOptions`; out go bytes. Cells are texts of values (`cells`), formats
are written batch by batch, tables fit the terminal, and an output (`outputs`) is where answers go one after
another.
"""
