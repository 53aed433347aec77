"""Nothing of a statement is ignored: what is not refused is read by the binder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlglot import exp

from bamquery.errors import SqlError, UnsupportedError
from bamquery.sql_frontend import statement_binder as statements
from bamquery.sql_frontend.binder.schema_names import settle_schemas
from bamquery.sql_frontend.parser.parser import parse
from bamquery.sql_frontend.support import supported_syntax as support
from bamquery.sql_frontend.support.reads import READ, WITHOUT_MEANING
from tests.golden.cases import FOLDER, GoldenFile
from tests.plans import catalog

STATEMENTS = [
    sql
    for name in (
        "queries",
        "statements",
        "column_names",
        "joins",
        "rules/optimize",
        "rules/narrow_comparisons",
    )
    for sql, _ in GoldenFile(FOLDER / f"{name}.txt").cases
]


class RecordingDict(dict[str, Any]):
    """A node's arguments, with the names that were asked for."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)


def _is_set(value: object) -> bool:
    return value is not None and value is not False and value != []


def _record_reads(sql: str) -> Iterator[tuple[exp.Expr, RecordingDict]]:
    """Each node of the statements, with what of it was read while they were bound."""
    for tree in parse(sql):
        settle_schemas([tree], sql, catalog().database)
        support.check(tree, sql)
        nodes = list(tree.walk())
        for node in nodes:
            node.args = RecordingDict(node.args)
        statements._bind_statement(tree, sql, catalog())
        for node in nodes:
            yield node, node.args


@pytest.mark.parametrize("sql", STATEMENTS)
def test_everything_is_read(sql: str) -> None:
    for node, arguments in _record_reads(sql):
        for name in set(arguments):
            if _is_set(dict.get(arguments, name)) and (type(node), name) not in WITHOUT_MEANING:
                assert name in arguments.read, f"{name} of {type(node).__name__} is not read in {sql}"


def test_everything_that_may_be_read_is_tried() -> None:
    """The statements above set every argument that `READ` lists, or the test above would prove nothing."""
    seen = {
        (type(node), name)
        for sql in STATEMENTS
        for node, arguments in _record_reads(sql)
        for name in arguments
        if _is_set(dict.get(arguments, name))
    }
    listed = {(kind, name) for kind, names in READ.items() for name in names}
    assert listed - seen == set()


def test_refusals_come_before_any_look_up() -> None:
    known = catalog()
    with pytest.raises(UnsupportedError):
        statements.bind("SELECT 1; SELECT nope FROM nowhere; UPDATE trips SET id = 1", known)
    assert known.looked_up == []


REFUSED = """
FROM trips, LATERAL (SELECT 1)
FROM trips POSITIONAL JOIN types
FROM trips ASOF RIGHT JOIN types ON trips.id >= types.c_i64
WITH RECURSIVE x(a) USING KEY (a) AS (SELECT 1 UNION SELECT a + 1 FROM x) FROM x
WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM x ORDER BY a) FROM x
FROM trips LIMIT 5 BY id
FROM trips TABLESAMPLE reservoir(10%)
FROM trips PIVOT (sum(id) FOR zone IN ('a'))
FROM trips UNPIVOT (x FOR y IN (id, vendor))
FROM trips MATCH_RECOGNIZE (PARTITION BY id)
SELECT sum(id) OVER (w ORDER BY id) FROM trips WINDOW w AS (ORDER BY zone)
SELECT lag(id ORDER BY zone) OVER () FROM trips
SELECT lag(id IGNORE NULLS) FROM trips
SELECT row_number() FILTER (WHERE paid) OVER () FROM trips
SELECT max(id) KEEP (DENSE_RANK FIRST ORDER BY id) FROM trips
SELECT lag(id, 1) RESPECT NULLS OVER (ORDER BY id) FROM trips
SELECT quantile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM trips
SELECT lower(zone ORDER BY id) FROM trips
SELECT id FROM trips GROUP BY (id, zone)
SELECT id FROM trips GROUP BY id WITH ROLLUP
SELECT id FROM trips GROUP BY id WITH TOTALS
SELECT id FROM trips ORDER BY id COLLATE nocase
SELECT id FROM trips ORDER BY id USING >
SELECT id FROM trips LIMIT 5 PERCENT
SELECT id FROM trips FOR SHARE
SELECT (id, vendor) FROM trips
SELECT (id, vendor) IS NULL FROM trips
SELECT id FROM trips WHERE id BETWEEN SYMMETRIC 5 AND 1
SELECT id FROM trips WHERE zone LIKE ANY ('a', 'b')
SELECT id FROM trips WHERE zone REGEXP 'a'
SELECT id IN zone FROM trips
SELECT COLUMNS(['id']) FROM trips
SELECT COLUMNS(lambda c: c LIKE 'i%') FROM trips
SELECT * EXCLUDE (trips.id) FROM trips
SELECT count(DISTINCT (id, vendor)) FROM trips
SELECT unnest([1, 2])
SELECT zone.x FROM trips
SELECT other.trips.id FROM trips
SELECT trips FROM trips
SELECT main.sum(id) FROM trips
SELECT zone.upper() FROM trips
SELECT #1 FROM trips
SELECT $x, ?1
SELECT id -> 'a' FROM trips
SELECT [x + 1 FOR x IN [1, 2]]
SELECT {'a': 1}.a
SELECT struct_pack(a := 1)
SELECT round(fare, digits := 1) FROM trips
SELECT CAST(id AS STRUCT(a INTEGER)) FROM trips
SELECT CAST(id AS VARCHAR FORMAT 'x') FROM trips
SELECT CAST(id AS ENUM ('a')) FROM trips
SELECT X'41', B'1', E'a'
SELECT current_time
SELECT INTERVAL 5
SELECT INTERVAL '1-2' YEAR TO MONTH
SELECT zone LIKE 'x' ESCAPE zone FROM trips
SELECT zone LIKE 'a' ESCAPE zone FROM trips
SELECT pickup AT TIME ZONE 'Europe/Berlin' FROM trips
SELECT random()
SELECT id ?? 1 FROM trips
SELECT id FROM trips@1
SELECT id FROM trips AT (VERSION => 1)
SELECT TOP 5 id FROM trips
SELECT id INTO x FROM trips
SELECT AS STRUCT id FROM trips
SELECT * FROM (VALUES (1, 2)) PIVOT (sum(a) FOR b IN (1))
SELECT * FROM trips WITH ORDINALITY
SELECT DISTINCT ON () id FROM trips
SELECT count(DISTINCT id, vendor) FROM trips
SELECT count(DISTINCT *) FROM trips
SELECT sum(DISTINCT id ORDER BY vendor) FROM trips
CREATE TABLE x (a INTEGER PRIMARY KEY)
CREATE TABLE x (a INTEGER, PRIMARY KEY (a))
CREATE TABLE x (a INTEGER UNIQUE)
CREATE TABLE x (a INTEGER CHECK (a > 0))
CREATE TABLE x (a INTEGER REFERENCES trips (id))
CREATE TABLE x (a INTEGER, b INTEGER GENERATED ALWAYS AS (a + 1))
CREATE TABLE x (a VARCHAR COLLATE nocase)
CREATE TABLE x (a INTEGER[])
CREATE TEMP VIEW x AS SELECT 1
CREATE VIEW other.x AS SELECT 1
CREATE VIEW x AS SELECT ?
DROP VIEW x CASCADE
ALTER TABLE trips ALTER id TYPE INTEGER
ALTER TABLE trips ALTER id SET DEFAULT 5
ALTER TABLE trips ADD CONSTRAINT c CHECK (id > 0)
ALTER TABLE trips ADD COLUMN x INTEGER UNIQUE
ALTER TABLE trips DROP COLUMN id CASCADE
ALTER TABLE other.trips ADD COLUMN x INTEGER
ALTER SEQUENCE s INCREMENT 2
COPY other.trips TO 'x'
COPY trips TO 'x' (FORMAT orc)
COPY FROM DATABASE a TO b
CREATE TABLE x AS SELECT 1 WITH NO DATA
CREATE TEMPORARY TABLE x AS SELECT 1
CREATE UNLOGGED TABLE x AS SELECT 1
CREATE TABLE other.x AS SELECT 1
CREATE TABLE x LIKE trips
CREATE TABLE x CLONE trips
CREATE MATERIALIZED VIEW x AS SELECT 1
CREATE INDEX x ON trips (id)
CREATE SCHEMA x
CREATE SEQUENCE x
CREATE MACRO f(a) AS a + 1
CREATE TYPE x AS ENUM ('a')
INSERT INTO trips SELECT * FROM trips ON CONFLICT DO NOTHING
INSERT OR IGNORE INTO trips SELECT * FROM trips
INSERT INTO other.trips SELECT * FROM trips
INSERT INTO trips WITH x AS (SELECT 1) FROM x
INSERT OVERWRITE trips SELECT * FROM trips
DROP TABLE other.x
DROP TABLE x CASCADE
DROP TABLE x RESTRICT
DROP INDEX x
DROP SCHEMA x
DESCRIBE TABLE trips
DESCRIBE FORMATTED trips
SHOW TABLES FROM other
EXPLAIN (FORMAT json) SELECT 1
EXPLAIN VACUUM
SET VARIABLE x = [1]
SET threads = 1, device = 'cpu'
SET a.b = 1
VACUUM ANALYZE
OPTIMIZE trips FINAL
OPTIMIZE trips ZORDER BY (id)
UPDATE trips SET id = 1
DELETE FROM trips
TRUNCATE trips
MERGE INTO trips USING types ON TRUE WHEN MATCHED THEN DELETE
ATTACH 'x'
DETACH x
USE x
BEGIN TRANSACTION
COMMIT
ROLLBACK
PRAGMA x
CALL f()
PREPARE x AS SELECT 1
EXECUTE x
EXPORT DATABASE 'x'
IMPORT DATABASE 'x'
INSTALL x
LOAD x
CHECKPOINT
SUMMARIZE nowhere
ANALYZE
COMMENT ON TABLE trips IS 'x'
ALTER TABLE trips RENAME TO types
ALTER VIEW trips RENAME TO x
GRANT SELECT ON trips TO x
KILL 5
"""


@pytest.mark.parametrize("sql", REFUSED.strip().splitlines())
def test_refused(sql: str) -> None:
    """Syntax that BamQuery does not have, in every corner that sqlglot or DuckDB knows, is an error."""
    with pytest.raises(SqlError):
        list(statements.bind(sql, catalog()))
