"""`bamquery nvme` and `bamquery bench block` in a guest whose kernel drives two drives."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.guests.guest.check import check

FOLDER = Path("/tmp")
BAMQUERY = [sys.executable, "-m", "bamquery"]
DRIVES = sys.argv[1:]


def call(*arguments: str) -> tuple[int, str]:
    """Exit status, and both outputs."""
    done = subprocess.run(
        [*BAMQUERY, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


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


def digest(address: str, skip: int = 0) -> str:
    with block_device(address).open("rb") as file:
        file.seek(skip)
        return hashlib.file_digest(file, "sha256").hexdigest()


def refuses(name: str, words: str, *arguments: str) -> None:
    """The command must not do it, in one line with these words, and the drives stay where they are."""
    status, text = call(*arguments)
    line = text.strip().splitlines()[-1] if text.strip() else ""
    before = [driver_of(address) for address in DRIVES]
    right = status == 1 and words in line and "Traceback" not in text and before == ["nvme", "nvme"]
    check(right, name, f"exit status {status}, drivers {before}: {text[-300:]}")


def find_obstacles() -> None:
    """Uses that a drive is not taken from."""
    first = DRIVES[0]
    device = block_device(first)
    status, text = call("nvme", "list", "--json")
    found = json.loads(text) if status == 0 else {"drives": []}
    nexts = [drive["next"] for drive in found["drives"]]
    check(nexts == [f"bamquery nvme bind {address}" for address in DRIVES], "listed", f"{nexts}")

    subprocess.run(["mkswap", str(device)], check=True, capture_output=True)
    swapped = subprocess.run(["swapon", str(device)], capture_output=True, text=True)
    check(swapped.returncode == 0, "swapped", f"swapon: {swapped.stderr or 'done'}")
    refuses("refused", f"swapped on → swapoff {device}", "nvme", "bind", first, "--yes")
    subprocess.run(["swapoff", str(device)], check=True)

    # As ZFS has it: the kernel lets nobody else have it, and says nowhere why.
    with open(os.open(device, os.O_RDONLY | os.O_EXCL), "rb"):
        # A process that has it open is seen first; this one is not the command's own.
        refuses(
            "open",
            f"open in the process {Path('/proc/self/comm').read_text().strip()}",
            "nvme",
            "bind",
            first,
        )
    busy = subprocess.run(
        [sys.executable, "-c", CLAIMED, str(device)], capture_output=True, text=True, timeout=60
    )
    check(busy.stdout.strip() == "claimed", "claimed", busy.stdout + busy.stderr[-300:])
    refuses("nowhere", "there is no device", "nvme", "bind", "0000:77:00.0", "--yes")
    status, text = call("nvme", "bind", first, "--dry-run")
    check(
        status == 0 and f"bamquery nvme unbind {first}" in text and driver_of(first) == "nvme",
        "dry-run",
        f"{status}, {driver_of(first)}: {text[-200:]}",
    )


CLAIMED = """
import os, sys
from pathlib import Path
from bamquery.driver.machine import Machine
from bamquery.driver.nvme import uses
device = Path(sys.argv[1])
kept = os.open(device, os.O_RDONLY | os.O_EXCL)
found = uses.find_uses(Machine(), Path("/sys/class/block") / device.name)
print(*(use.kind for use in found))
"""


def use(number: int, address: str) -> None:
    """From the kernel to user space."""
    status, text = call("nvme", "bind", address, "--yes")
    right = status == 0 and driver_of(address) == "vfio-pci" and "chown" in text
    check(right, f"bound-{number}", f"{status}, {driver_of(address)}: {text[-300:]}")
    file = FOLDER / f"drive-{number}.json"
    status, text = call("nvme", "test", address, "--blocks", "20000", "--json", str(file))
    check(status == 0 and "all the same" in text, f"tested-{number}", f"{status}: {text[-1500:]}")
    report = json.loads(file.read_text()) if file.exists() else {}
    codes = [(one["sct"], one["sc"]) for one in report.get("error_statuses", [])]
    right = codes == [(0, 0x80)] * 3 + [(0, 0x0B)] and report["right"] and "serial" not in report["drive"]
    check(right, f"report-{number}", f"statuses {codes}; {report.get('doorbells')}; {report.get('limits')}")
    measure(number, address)
    interrupt(number, address)
    write(number, address)


def measure(number: int, address: str) -> None:
    file = FOLDER / "figures.json"
    bench = ["bench", "block", "--backing", f"nvme:{address}/1", "--extent", "16M", "--duration", "1s"]
    status, text = call(*bench, "--json", str(file), "--beside", "/tmp/blocks")
    paths = {}
    if file.exists():
        paths = {one["path"]: one for one in json.loads(file.read_text())["runs"][0]["figures"]}
    drives = paths.get("drive", {}).get("drives", [])
    right = status == 0 and set(paths) == {"drive", "rings", "io_uring"} and bool(drives)
    check(right and drives[0]["errors"] == 0, f"measured-{number}", f"{status}, {drives}: {text[-1500:]}")


def interrupt(number: int, address: str) -> None:
    """Ctrl-C: within a second or so, and the drive is free for the next."""
    process = subprocess.Popen(
        [*BAMQUERY, "nvme", "test", address, "--blocks", "100000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("namespace 1"):
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    text, _ = process.communicate(timeout=60)
    seconds = time.monotonic() - begin
    status, again = call("nvme", "test", address, "--blocks", "1000")
    check(
        process.returncode == 130 and status == 0,
        f"interrupted-{number}",
        f"{process.returncode} after {seconds:.1f} s, then {status}: {text[-300:]} {again[-300:]}",
    )


def write(number: int, address: str) -> None:
    """Only with both flags; then its first blocks hold the benchmark's content."""
    bench = ["bench", "block", "--backing", f"nvme:{address}/1", "--extent", "8M", "--duration", "500ms"]
    refused, _ = call(*bench, "--mix", "50/50")
    status, text = call(*bench, "--mix", "50/50", "--writable", "--lose-data")
    right = refused == 2 and status == 0 and "verified" in text
    check(right, f"written-{number}", f"{refused}, then {status}: {text[-1500:]}")


def main() -> None:
    skip = 8 << 20
    before = [digest(address, skip) for address in DRIVES]
    find_obstacles()
    for number, address in enumerate(DRIVES):
        use(number, address)
    group = Path(f"/sys/bus/pci/devices/{DRIVES[0]}/iommu_group").resolve().name
    with open(f"/dev/vfio/{group}", "rb"):
        status, text = call("nvme", "unbind", DRIVES[0])
        right = status == 1 and "in use by the process" in text and driver_of(DRIVES[0]) == "vfio-pci"
        check(right, "in-use", f"{status}: {text[-300:]}")
    said = [call("nvme", "unbind", address) for address in DRIVES]
    drivers = [driver_of(address) for address in DRIVES]
    check(drivers == ["nvme", "nvme"], "given-back", f"{drivers}: {said}")
    after = [digest(address, skip) for address in DRIVES]
    check(after == before, "as-before", "what was not written to is as it was")
    faults = [line for line in kernel_lines() if "DMAR" in line and "fault" in line]
    check(not faults, "no-faults", f"{faults[:3] or 'the IOMMU refused nothing'}")


def kernel_lines() -> list[str]:
    return subprocess.run(["dmesg"], capture_output=True, text=True).stdout.splitlines()


if __name__ == "__main__":
    main()
