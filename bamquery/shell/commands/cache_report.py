"""What is kept in memory from query to query, as far as anybody knows. Imports the engine."""

from __future__ import annotations

from bamquery.engine.human_units import human_bytes, plural
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.storage.files.mapped_files import MAPPED_FILES


def cache_lines(profile: QueryProfile | None) -> list[str]:
    """Maps of files, and what the latest query's readers say of caches."""
    files, size = MAPPED_FILES.usage()
    lines = [
        f"{plural(files, 'file')} of tables stay mapped, of which about {human_bytes(size)} were read. "
        "Which of that is still in memory, the system decides."
    ]
    if profile is None:
        return [*lines, "No query was run yet."]
    for scan in profile.scans:
        if scan.reader == "mapped":
            kept = "through the page cache: what it had in memory counts as read, too"
        elif scan.reader:
            kept = "past the page cache: every byte came from the drive"
        else:
            kept = "nothing"
        lines.append(f"The latest query read {human_bytes(scan.counters.bytes)} of {scan.source} {kept}.")
    if not profile.scans:
        lines.append("The latest query read no table.")
    return lines
