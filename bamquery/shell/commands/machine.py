"""Commands about the database, the device and the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bamquery.shell.commands.command import Command, CommandArguments, expand_path

if TYPE_CHECKING:
    from bamquery.shell.shell import Shell


def _open(shell: Shell, words: CommandArguments) -> None:
    name = words.optional("a database's folder")
    database = ":memory:" if name in (None, ":memory:") else str(expand_path(str(name)))
    shell.open(database)
    made = "made" if shell.opening.is_new_database and database != ":memory:" else "opened"
    shell.console.dim(f"{made} {database}: {shell.opening.device}")


def _device(shell: Shell, words: CommandArguments) -> None:
    name = words.optional("auto, cpu or cuda:0")
    connection = shell.connection
    if name is not None:
        connection.set("device", name)
        shell.opening.refresh_device()
    shell.console.write_lines(shell.opening.device)
    from bamquery.engine.device_factory import open_device  # noqa: PLC0415 (it imports pyarrow)

    settings = connection.settings
    for note in open_device(settings.device, settings.gpu_memory_limit)[1]:
        shell.console.dim(note)


def _settings(shell: Shell, words: CommandArguments) -> bool:
    words.expect_end()
    from bamquery.shell.statement_runner import run_statements  # noqa: PLC0415 (it imports the engine)

    return run_statements(shell, "SHOW SETTINGS", by_command=True)


def _cache(shell: Shell, words: CommandArguments) -> None:
    words.expect_end()
    profile = shell.answers.profile
    from bamquery.shell.commands.cache_report import cache_lines  # noqa: PLC0415 (it imports the engine)

    for line in cache_lines(profile):
        shell.console.write_lines(line)


def _check(shell: Shell, words: CommandArguments) -> bool:
    words.expect_end()
    connection = shell.connection
    from bamquery.engine.human_units import human_bytes, plural  # noqa: PLC0415 (with the engine)

    report = connection.check()
    for error in report.errors:
        shell.console.error(f"damaged: {error}")
    for litter in report.litter:
        shell.console.write_lines(f"not needed: {litter} (VACUUM removes it)")
    for unknown in report.unknown:
        shell.console.write_lines(f"not BamQuery's: {unknown}")
    shell.console.write_lines(
        f"{plural(report.tables, 'table')}, {plural(report.versions, 'version')}, "
        f"{plural(report.fragments, 'fragment')}, {human_bytes(report.bytes)}: "
        + ("no damage" if report.clean else plural(len(report.errors), "damaged part"))
    )
    return report.clean


def _doctor(shell: Shell, words: CommandArguments) -> None:
    path = words.optional("a folder")
    from bamquery.driver.doctor.command_line import main  # noqa: PLC0415 (rich, and probes of the machine)

    main([] if path is None else [str(expand_path(path))])


MACHINE: Final = (
    Command(
        "open",
        "[DB]",
        "go over to another database; without DB a temporary one",
        _open,
        psql=("\\c",),
        completes="files",
        details="Its folder is made if there is none. Where it cannot be opened, the old one stays.",
    ),
    Command(
        "device",
        "[auto|cpu|cuda:0]",
        "where queries run, and why",
        _device,
        completes=("auto", "cpu", "cuda:0"),
    ),
    Command("settings", "", "all settings of the database; SET name = value changes one", _settings),
    Command("cache", "", "what is kept in memory from query to query", _cache),
    Command("check", "", "read everything back and compare checksums", _check),
    Command("doctor", "[FOLDER]", "what this machine has and lacks", _doctor, completes="files"),
)
