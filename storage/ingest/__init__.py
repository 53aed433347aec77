"""Rows from outside into tables.

In come files (Parquet, CSV, Arrow), frames and streams; `open_source` makes one source of them, with the
schema in which they would be stored. Out go record batches of that schema, by `ingest` into a table's writer
or straight into a query.
"""

from bamquery.storage.ingest.ingest import ingest
from bamquery.storage.ingest.opening import open_source
from bamquery.storage.ingest.progress import Progress
from bamquery.storage.ingest.sources.source import IngestSource

__all__ = ["IngestSource", "Progress", "ingest", "open_source"]
