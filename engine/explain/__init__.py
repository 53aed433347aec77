"""EXPLAIN and EXPLAIN ANALYZE: text, HTML, charts."""
