from pathlib import Path

import pytest

from bamquery.driver.bench.options import Sweep, parser_of, workload_of, workloads
from bamquery.driver.bench.workload import (
    Access,
    ArrayWorkload,
    Backing,
    BlockWorkload,
    CacheWorkload,
    PathName,
    Pattern,
    Setup,
)
from bamquery.errors import SettingError


def parse(benchmark: str, *argv: str) -> tuple[Setup, Sweep | None]:
    return workload_of(benchmark, parser_of(benchmark, "").parse_args(["--device", "cpu", *argv]))


def test_everything_can_be_said() -> None:
    line = (
        "--block-size 64k --mix 70/30 --pattern zipf --theta 1.2 --pairs 3 --depth 128 --threads 2 "
        "--backing /data/x --direct --overwrite --keep --extent 1G --lba 4096 --duration 300ms "
        "--profile optane --drives 4 --seed 9 --no-verify --deadline 2s --paths io_uring,rings"
    )
    workload, sweep = parse("block", *line.split())
    assert sweep is None
    assert workload == BlockWorkload(
        block_bytes=65536,
        write_share=0.3,
        pattern=Pattern.ZIPF,
        theta=1.2,
        pairs=3,
        depth=128,
        controller_threads=2,
        backing=Backing(Path("/data/x"), Access.DIRECT, overwrite=True, keep=True),
        extent_bytes=1 << 30,
        lba_bytes=4096,
        seconds=0.3,
        profile="optane",
        drives=4,
        seed=9,
        verify=False,
        deadline_seconds=2.0,
        paths=(PathName.IO_URING, PathName.RINGS),
    )


def test_defaults_run_as_they_are() -> None:
    block, _ = parse("block")
    assert isinstance(block, BlockWorkload)
    assert block.paths == (PathName.RINGS, PathName.MAPPED)
    assert block.pairs >= 1
    of_a_file, _ = parse("block", "--backing", "x")
    assert isinstance(of_a_file, BlockWorkload)
    assert of_a_file.paths == (PathName.RINGS, PathName.IO_URING, PathName.MAPPED)
    cache, _ = parse("cache", "--cache-size", "8M", "--page-size", "512", "--warm")
    assert isinstance(cache, CacheWorkload)
    assert (cache.cache_bytes, cache.page_bytes, cache.warm) == (8 << 20, 512, True)
    array, _ = parse("array", "--operation", "scan", "--element", "float32")
    assert isinstance(array, ArrayWorkload)
    assert (array.operation, array.element) == ("scan", "float32")


def test_sweeps() -> None:
    workload, sweep = parse("block", "--sweep", "pairs=1..4")
    assert sweep is not None
    assert (sweep.name, sweep.texts) == ("pairs", ("1", "2", "4"))
    assert [one.pairs for one in workloads(workload, sweep)] == [1, 2, 4]
    workload, sweep = parse("cache", "--sweep", "cache-size=8M..32M")
    assert sweep is not None
    assert sweep.texts == ("8M", "16M", "32M")
    sizes = [one.cache_bytes for one in workloads(workload, sweep) if isinstance(one, CacheWorkload)]
    assert sizes == [8 << 20, 16 << 20, 32 << 20]
    workload, sweep = parse("block", "--sweep", "profile=optane,znand,980pro", "--drives", "2")
    assert [one.profile for one in workloads(workload, sweep)] == ["optane", "znand", "980pro"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--depth 3", "power of two"),
        ("--depth 1", "power of two"),
        ("--depth 131072", "to 65536"),
        ("--block-size 1000", "power of two"),
        ("--block-size 512 --lba 4096", "logical block"),
        ("--extent 5000", "multiple of 4096"),
        ("--paths io_uring", "--backing FILE"),
        ("--paths copy-engine", "cpu has rings, io_uring, mapped"),
        ("--direct", "are for files"),
        ("--overwrite", "are for files"),
        ("--drives 2", "--profile"),
        ("--sweep pairs", "NAME=VALUES"),
        ("--sweep cache-size=1M", "NAME is pairs"),
        ("--sweep depth=2,3", "--depth 3"),
        ("--sweep pairs=0", "whole number"),
        ("--theta 0", "more than 0"),
        ("--device cuda:0", "bamquery doctor"),
    ],
)
def test_what_does_not_go_together(line: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.exists", lambda _: False)
    with pytest.raises(SettingError) as raised:
        parse("block", *line.split())
    assert message in str(raised.value)


def test_a_gpu_needs_threads_that_serve_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.exists", lambda _: True)
    monkeypatch.setattr("bamquery.driver.bench.options._has_cuda", lambda: True)
    workload, _ = parse("block", "--device", "auto")
    assert isinstance(workload, BlockWorkload)
    assert workload.device == "cuda:0"
    assert workload.paths == (PathName.RINGS, PathName.ZERO_COPY, PathName.COPY_ENGINE)
    assert workload.depth == 256
    with pytest.raises(SettingError, match="--threads 0"):
        parse("block", "--device", "cuda:1", "--threads", "0")


@pytest.mark.parametrize(
    "line",
    [
        "--block-size 4x",
        "--mix 70",
        "--paths rings,magic",
        "--device tpu",
        "--seed -1",
        "--lba 1024",
        "--pairs 0",
    ],
)
def test_mistakes_are_told_by_argparse(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        parse("block", *line.split())
    assert raised.value.code == 2
    assert f"argument {line.split(maxsplit=1)[0]}: " in capsys.readouterr().err
