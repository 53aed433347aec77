"""Who watches while queries run: bars on a terminal and in notebooks, and callbacks; one thread tells all.

In come runs (`bamquery.session.query_progress.RunningQuery`), which say when they begin, give rows to their
caller and end; out go looks at their `progress()` at intervals.
"""
