"""Made-up roots: files below a folder, as /proc and /sys would have them."""

from collections.abc import Mapping
from pathlib import Path

from bamquery.driver.machine import Machine

CPUINFO = "processor\t: 0\nmodel name\t: Pretend 9000\nflags\t\t: fpu sse4_2 avx2 avx512f\n\nprocessor: 1\n"
MEMINFO = "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\nHugePages_Total: 0\nHugepagesize: 2048 kB\n"

NVME = "sys/devices/pci0000:00/0000:01:00.0"
GPU = "sys/devices/pci0000:00/0000:41:00.0"

SERVER = {
    "proc/sys/kernel/osrelease": "6.8.0-45-generic",
    "proc/cpuinfo": CPUINFO,
    "proc/meminfo": MEMINFO,
    "proc/self/status": "Name:\tpython\nSeccomp:\t0\n",
    "proc/self/cgroup": "0::/\n",
    "proc/self/mountinfo": (
        "22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw\n"
        "30 22 259:1 / /data\\040disk rw,noatime shared:2 - xfs /dev/nvme0n1p1 rw\n"
    ),
    "proc/swaps": "Filename\t\t\t\tType\t\tSize\n/dev/sda3 partition 1024\n",
    "proc/driver/nvidia/version": (
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  (dvs)\n"
        "GCC version: 12\n"
    ),
    "proc/driver/nvidia/gpus/0000:41:00.0/information": "Model: \t\t NVIDIA H200\nGPU UUID: GPU-secret\n",
    "sys/devices/system/cpu/cpu0/online": "1",
    "sys/devices/system/cpu/cpu1/online": "1",
    "sys/devices/system/cpu/cpufreq/policy0/name": "x",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "sys/kernel/iommu_groups/7/type": "DMA-FQ",
    "sys/class/iommu/dmar0/x": "",
    "sys/bus/pci/drivers/vfio-pci/module": "",
    "sys/bus/pci/drivers/nvme/module": "",
    "sys/bus/pci/drivers/nvidia/module": "",
    "dev/vfio/vfio": "",
    f"{NVME}/vendor": "0x8086",
    f"{NVME}/class": "0x010802",
    f"{NVME}/numa_node": "0",
    f"{NVME}/current_link_speed": "8.0 GT/s PCIe",
    f"{NVME}/current_link_width": "4",
    f"{NVME}/max_link_speed": "8.0 GT/s PCIe",
    f"{NVME}/max_link_width": "4",
    "sys/class/nvme/nvme0/model": "INTEL SSDPED1D480GA                     ",
    "sys/class/nvme/nvme0/serial": "SECRET123",
    "sys/class/nvme/nvme0/firmware_rev": "E2010480",
    "sys/class/nvme/nvme0/transport": "pcie",
    "sys/class/nvme/nvme0/state": "live",
    "sys/class/nvme/nvme0/nvme0n1/size": "937703088",
    "sys/class/nvme/nvme0/nvme0n1/nsid": "1",
    "sys/class/nvme/nvme0/nvme0n1/dev": "259:0",
    "sys/class/nvme/nvme0/nvme0n1/queue/logical_block_size": "512",
    "sys/class/nvme/nvme0/nvme0n1/nvme0n1p1/dev": "259:1",
    f"{GPU}/vendor": "0x10de",
    f"{GPU}/class": "0x030200",
    f"{GPU}/device": "0x2335",
    f"{GPU}/numa_node": "1",
    f"{GPU}/current_link_speed": "32.0 GT/s PCIe",
    f"{GPU}/current_link_width": "16",
    f"{GPU}/max_link_speed": "32.0 GT/s PCIe",
    f"{GPU}/max_link_width": "16",
}
LINKS = {
    "sys/bus/pci/devices/0000:01:00.0": NVME,
    "sys/bus/pci/devices/0000:41:00.0": GPU,
    "sys/class/nvme/nvme0/device": NVME,
    f"{NVME}/driver": "sys/bus/pci/drivers/nvme",
    f"{NVME}/iommu_group": "sys/kernel/iommu_groups/7",
    f"{GPU}/driver": "sys/bus/pci/drivers/nvidia",
}


def make(
    root: Path,
    changes: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
    without: tuple[str, ...] = (),
) -> Machine:
    """A server with a drive and a GPU, changed; `without` takes away what begins so."""
    for name, text in (SERVER | dict(changes or {})).items():
        if not name.startswith(without):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
    for name, target in (LINKS | dict(links or {})).items():
        if not name.startswith(without):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(root / target)
    return Machine(root=root, folder=Path("/"))
