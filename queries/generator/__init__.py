"""Taxi trips of any number, drawn from what was measured on real ones; docs/taxi.md tells how they compare.

Every value of a row is a pure function of the seed and the row's number, so chunks, threads and the choice
of columns change nothing, and any part of any size can be made in bounded memory.
"""
