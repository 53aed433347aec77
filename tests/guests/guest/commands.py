"""`bamquery nvme` and `bamquery bench block` in a guest whose kernel drives two drives."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bamquery.command_line.main import main
from tests.guests.guest.check import check

FOLDER = Path("/tmp")
DRIVES = sys.argv[1:]
WRITTEN = 8 << 20
"""Bytes of each drive that the benchmark writes."""


def call(*arguments: str) -> tuple[int, str]:
    """Exit status, and both outputs. In this process: starting another takes seconds in a guest."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            status = main(arguments)
        except SystemExit as ended:
            status = int(ended.code or 0)
    return status, said.getvalue()


def driver_of(address: str) -> str:
    link = Path(f"/sys/bus/pci/devices/{address}/driver")
    return link.resolve().name if link.exists() else "none"


def block_device(address: str) -> Path:
    """Of the drive, once the kernel has found it."""
    for _ in range(200):
        found = list(Path(f"/sys/bus/pci/devices/{address}/nvme").glob("nvme*/nvme*n1"))
        if found and Path(f"/dev/{found[0].name}").exists():
            return Path(f"/dev/{found[0].name}")
        time.sleep(0.05)
    raise FileNotFoundError(f"no namespace of {address}")


def digest(address: str) -> str:
    """Of what is behind the bytes that are written."""
    with block_device(address).open("rb") as file:
        file.seek(WRITTEN)
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def held(file: Path) -> Iterator[int]:
    """A process that has it open; its number."""
    with file.open("rb") as opened:
        holder = subprocess.Popen(["sleep", "1000"], stdin=opened)
    try:
        yield holder.pid
    finally:
        holder.kill()
        holder.wait()


def refuses(name: str, words: str, address: str) -> None:
    """`bind` must not do it, in one line with these words, and the drives stay where they are."""
    status, text = call("nvme", "bind", address, "--yes")
    line = text.strip().splitlines()[-1] if text.strip() else ""
    drivers = [driver_of(one) for one in DRIVES]
    right = status == 1 and words in line and drivers == ["nvme", "nvme"]
    check(right, name, f"exit status {status}, drivers {drivers}: {text[-300:]}")


def refuse_all() -> None:
    """What is in use, and what is not there."""
    first = DRIVES[0]
    device = block_device(first)
    status, text = call("nvme", "list", "--json")
    nexts = [drive["next"] for drive in json.loads(text)["drives"]] if status == 0 else [text]
    check(nexts == [f"bamquery nvme bind {address}" for address in DRIVES], "listed", f"{nexts}")
    subprocess.run(["mkswap", str(device)], check=True, capture_output=True)
    subprocess.run(["swapon", str(device)], check=True)
    refuses("swapped", f"swapped on → swapoff {device}", first)
    subprocess.run(["swapoff", str(device)], check=True)
    with held(device) as process:
        refuses("open", f"is open in the process sleep ({process}) → kill {process}", first)
    # As ZFS has it: the kernel lets nobody else have it, and says nowhere why. Of this process itself the
    # command does not look at the files.
    kept = os.open(device, os.O_RDONLY | os.O_EXCL)
    refuses("claimed", "claimed by something within the kernel", first)
    os.close(kept)
    refuses("nowhere", "there is no device", "0000:77:00.0")
    status, text = call("nvme", "bind", first, "--dry-run")
    right = status == 0 and f"bamquery nvme unbind {first}" in text and driver_of(first) == "nvme"
    check(right, "dry-run", f"{status}, {driver_of(first)}: {text[-200:]}")


def use(number: int, address: str) -> None:
    """From the kernel to user space, and what can be done there."""
    status, text = call("nvme", "bind", address, "--yes")
    right = status == 0 and driver_of(address) == "vfio-pci" and "chown" in text
    check(right, f"bound-{number}", f"{status}, {driver_of(address)}: {text[-300:]}")
    file = FOLDER / f"drive-{number}.json"
    status, text = call("nvme", "test", address, "--blocks", "4000", "--json", str(file))
    check(status == 0 and "all the same" in text, f"tested-{number}", f"{status}: {text[-2000:]}")
    report = json.loads(file.read_text()) if file.exists() else {}
    codes = [(one["sct"], one["sc"]) for one in report.get("error_statuses", [])]
    right = codes == [(0, 0x80)] * 3 + [(0, 0x0B)] and report["right"] and "serial" not in report["drive"]
    check(right, f"report-{number}", f"statuses {codes}; {report.get('doorbells')}; {report.get('limits')}")
    measure(number, address)
    write(number, address)


def measure(number: int, address: str) -> None:
    """Beside rings over a file, and io_uring."""
    file = FOLDER / "figures.json"
    bench = ["bench", "block", "--backing", f"nvme:{address}/1", "--extent", "8M", "--duration", "500ms"]
    status, text = call(*bench, "--json", str(file), "--beside", "/tmp/blocks")
    paths = {one["path"]: one for one in json.loads(file.read_text())["runs"][0]["figures"]}
    drives = paths.get("drive", {}).get("drives", [])
    right = status == 0 and set(paths) == {"drive", "rings", "io_uring"} and bool(drives)
    check(right and drives[0]["errors"] == 0, f"measured-{number}", f"{status}, {drives}: {text[-2000:]}")


def write(number: int, address: str) -> None:
    """Only with both flags."""
    bench = ["bench", "block", "--backing", f"nvme:{address}/1", "--extent", "8M", "--duration", "500ms"]
    refused, _ = call(*bench, "--mix", "50/50")
    status, text = call(*bench, "--mix", "50/50", "--writable", "--lose-data")
    right = refused == 2 and status == 0 and "verified" in text
    check(right, f"written-{number}", f"{refused}, then {status}: {text[-1500:]}")


def interrupt(address: str) -> None:
    """Ctrl-C, and the drive is free for the next."""
    command = [sys.executable, "-m", "bamquery", "nvme", "test", address, "--blocks", "100000000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("namespace 1"):
            break
    time.sleep(0.5)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    seconds = time.monotonic() - begin
    status, again = call("nvme", "test", address, "--blocks", "1000")
    check(
        process.returncode == 130 and status == 0,
        "interrupted",
        f"{process.returncode} after {seconds:.1f} s, then {status}: {text[-300:]} {again[-300:]}",
    )


def give_back() -> None:
    """Not while somebody has it."""
    group = Path(f"/sys/bus/pci/devices/{DRIVES[0]}/iommu_group").resolve().name
    with held(Path(f"/dev/vfio/{group}")) as process:
        status, text = call("nvme", "unbind", DRIVES[0])
        right = status == 1 and f"kill {process}" in text and driver_of(DRIVES[0]) == "vfio-pci"
        check(right, "in-use", f"{status}: {text[-300:]}")
    said = [call("nvme", "unbind", address) for address in DRIVES]
    drivers = [driver_of(address) for address in DRIVES]
    check(drivers == ["nvme", "nvme"], "given-back", f"{drivers}: {said}")


if __name__ == "__main__":
    before = [digest(address) for address in DRIVES]
    refuse_all()
    for place, each in enumerate(DRIVES):
        use(place, each)
    interrupt(DRIVES[0])
    give_back()
    after = [digest(address) for address in DRIVES]
    check(after == before, "as-before", "what was not written to is as it was")
    kernel = subprocess.run(["dmesg"], capture_output=True, text=True).stdout
    faults = [line for line in kernel.splitlines() if "DMAR" in line and "fault" in line]
    check(not faults, "no-faults", f"{faults[:3] or 'the IOMMU refused nothing'}")
