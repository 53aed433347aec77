"""What QEMU is told of a machine and its drives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guests.accelerator import TCG, has_extensions
from tests.guests.drives import Drive, Fault, Namespace, arguments, drive, parsed
from tests.guests.machine import Machine

IMAGE, INITRAMFS, LOGS = Path("/vmlinux"), Path("/initramfs"), Path("/logs")


def test_drives_of_a_command_line() -> None:
    assert parsed("512:64M,4096:1G:iops=2000") == [
        Drive((Namespace(64 << 20, 512),)),
        Drive((Namespace(1 << 30, 4096, iops=2000),)),
    ]
    assert parsed("") == []
    for wrong in ("512", "512:64X", "512:64M:iops"):
        with pytest.raises(ValueError, match=r"not enough values|is no size"):
            parsed(wrong)


def test_a_drive_has_its_place_and_limits() -> None:
    plain = drive("64M")
    odd = Drive(
        (Namespace(1 << 20, 4096, metadata=8, protection=1),) * 2, 3, 2, 16, "odd", "12.1", "use-intel-id=on"
    )
    assert [plain.address_at(0), plain.address_at(1), odd.address_at(2)] == [
        "0000:00:10.0",
        "0000:00:11.0",
        "0000:00:12.1",
    ]
    made = arguments([plain, odd], [[Path("/a")], [Path("/b"), Path("/c")]])
    assert [made[i + 1] for i, word in enumerate(made) if word == "-device"] == [
        "nvme,id=nvme0,serial=guest0,addr=10.0,max_ioqpairs=64,mdts=7,cmb_size_mb=0",
        "nvme-ns,bus=nvme0,drive=drive0-1,nsid=1,logical_block_size=512,physical_block_size=512,ms=0,pi=0",
        "nvme,id=nvme1,serial=odd,addr=12.1,max_ioqpairs=3,mdts=2,cmb_size_mb=16,use-intel-id=on",
        "nvme-ns,bus=nvme1,drive=drive1-1,nsid=1,logical_block_size=4096,physical_block_size=4096,ms=8,pi=1",
        "nvme-ns,bus=nvme1,drive=drive1-2,nsid=2,logical_block_size=4096,physical_block_size=4096,ms=8,pi=1",
    ]
    assert made[3] == "if=none,id=drive0-1,cache=unsafe,format=raw,file=/a"


def test_functions_of_a_slot_are_one_device() -> None:
    pair = [Drive((Namespace(1 << 20),), place=place) for place in ("10.0", "10.1")]
    made = arguments(pair, [[Path("/a")], [Path("/b")]])
    assert [("multifunction=on" in word) for word in made if word.startswith("nvme,")] == [True, True]


def test_faults_and_limits_are_below_the_drive() -> None:
    faults = (Fault(80), Fault(None, "write", 28, once=True))
    (line,) = (
        word
        for word in arguments([Drive((Namespace(1 << 20, iops=500, faults=faults),))], [[Path("/a")]])
        if word.startswith("if=none")
    )
    assert line == (
        "if=none,id=drive0-1,cache=unsafe,driver=blkdebug,image.driver=raw,image.file.driver=file"
        ",image.file.filename=/a,inject-error.0.event=none,inject-error.0.iotype=read,inject-error.0.errno=5"
        ",inject-error.0.once=off,inject-error.0.sector=80,inject-error.1.event=none,inject-error.1.iotype=write"
        ",inject-error.1.errno=28,inject-error.1.once=on,throttling.iops-total=500"
    )


@pytest.mark.parametrize("has_iommu", [True, False])
def test_the_iommu_comes_before_drives(has_iommu: bool) -> None:
    machine = Machine(memory_mb=256, processors=1, has_iommu=has_iommu, options=("-device", "last"))
    made = machine.arguments(IMAGE, INITRAMFS, LOGS, TCG)
    kernel = made[made.index("-append") + 1]
    assert ("intel_iommu=on" in kernel.split()) == has_iommu
    assert any(word.startswith("intel-iommu,intremap=on,caching-mode=on") for word in made) == has_iommu
    assert made[-2:] == ["-device", "last"]
    assert {"isa-debug-exit,iobase=0xf4,iosize=4", "q35,kernel-irqchip=split", "256M", TCG} <= {*made}


@pytest.mark.parametrize(
    ("flags", "has"),
    [("fpu vmx sse", True), ("fpu svm", True), ("fpu svm_lock hypervisor vmmcall", False), ("", False)],
)
def test_kvm_is_asked_for_by_the_processor(flags: str, has: bool) -> None:
    assert has_extensions(f"processor\t: 0\nvmx flags\t: none\nflags\t\t: {flags}\nbugs\t: svm vmx\n") == has
