"""GPUs: whether there are any, their driver, their PCIe links, and what CUDA says of them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bamquery.driver.doctor.finding import Finding, Level
from bamquery.driver.doctor.pcie import read_link
from bamquery.driver.machine import Machine, gib
from bamquery.driver.nvme.gpu_doorbells import gpu_doorbells

_NEEDED_DRIVER: Final = 580
"""The first that runs CUDA 13."""
_NEEDED_CAPABILITY: Final = (8, 0)
"""What the kernels are compiled and tested for, from Ampere on."""
_NVIDIA: Final = "0x10de"
_INSTALL: Final = f"install NVIDIA's driver {_NEEDED_DRIVER} or newer"


def check_gpus(machine: Machine) -> Iterator[Finding]:
    """GPUs on the bus, with what drives them and their links."""
    devices = _find_pci_devices(machine)
    if not devices and not machine.exists("/proc/driver/nvidia/version"):
        yield Finding(
            "GPU",
            Level.MISSING,
            "no NVIDIA GPU",
            "everything runs on the CPU",
            'a GPU from Ampere on and pip install "bamquery[cu13]"; nothing to do for the CPU',
        )
        return
    for device in devices:
        yield from _device(machine, device)
    yield from _kernel_driver(machine)


def check_cuda(machine: Machine) -> Iterator[Finding]:
    """What CUDA itself says: needs the driver and the Python packages, makes no context."""
    if not machine.is_this or not machine.exists("/proc/driver/nvidia/version"):
        return
    try:
        cuda: Any = importlib.import_module("cuda.bindings.driver")
    except ImportError:
        yield Finding(
            "CUDA",
            Level.MISSING,
            "cuda-bindings is not installed",
            "a GPU is there, but Python cannot reach it",
            'pip install "bamquery[cu13]"',
        )
        return
    (status,) = cuda.cuInit(0)
    if int(status):
        yield Finding(
            "CUDA",
            Level.MISSING,
            f"cuInit says {status.name}",
            "the GPU cannot be used by this process",
            "check nvidia-smi, the device files /dev/nvidia*, and CUDA_VISIBLE_DEVICES",
        )
        return
    _, count = cuda.cuDeviceGetCount()
    if not count:
        yield Finding(
            "CUDA",
            Level.MISSING,
            "no device visible",
            "the GPU cannot be used by this process",
            "check CUDA_VISIBLE_DEVICES and what the container was given",
        )
    for number in range(count):
        yield _cuda_device(cuda, number)


def _find_pci_devices(machine: Machine) -> list[Path]:
    # Class 0300h is a VGA controller, 0302h a 3D controller; audio and USB functions of the card are others.
    return [
        device
        for device in machine.glob("/sys/bus/pci/devices/*")
        if machine.text(device / "vendor") == _NVIDIA
        and (machine.text(device / "class") or "").startswith(("0x0300", "0x0302"))
    ]


def _device(machine: Machine, device: Path) -> Iterator[Finding]:
    address = device.name
    bound = machine.link(device / "driver")
    model = machine.fields(f"/proc/driver/nvidia/gpus/{address}/information").get("Model")
    name = model or f"NVIDIA device {machine.text(device / 'device') or 'unknown'}"
    values = {
        "address": address,
        "model": model,
        "driver": bound,
        "numa_node": machine.number(device / "numa_node"),
    }
    if bound == "nvidia":
        doorbells = gpu_doorbells(address, machine)
        values |= {"doorbells": doorbells.kind, "doorbells_reason": doorbells.reason}
        found = f"{name} at {address}; drives' doorbells: {doorbells.kind}, since {doorbells.reason}"
        yield Finding("GPU", Level.OK, found, values=values)
    else:
        yield Finding(
            "GPU",
            Level.MISSING,
            f"{name} at {address}, driver: {bound or 'none'}",
            "CUDA cannot use it",
            _INSTALL if bound != "vfio-pci" else "it is lent to a virtual machine: unbind it from vfio-pci",
            values=values,
        )
    link = read_link(machine, device)
    if link is None:
        return
    label = f"PCIe of GPU {address}"
    if link.width < link.max_width:
        yield Finding(
            label,
            Level.NOTE,
            str(link),
            "fewer lanes than the GPU has: reads arrive at this rate at most",
            "a slot with all lanes, or fewer devices that share them",
            values=link.to_dict(),
        )
    elif link.is_slowed:
        yield Finding(
            label,
            Level.NOTE,
            str(link),
            "an idle GPU slows its link down; if it stays so under load, the slot is older than the GPU",
            "look again while a benchmark runs",
            values=link.to_dict(),
        )
    else:
        yield Finding(label, Level.OK, str(link), values=link.to_dict())


def _kernel_driver(machine: Machine) -> Iterator[Finding]:
    text = machine.text("/proc/driver/nvidia/version")
    if text is None:
        return  # the GPU's own line says so
    match = re.search(r"\s(\d+)\.(\d+)[.\d]*\s", text)
    version = match.group().strip() if match else "unknown version"
    kind = "open kernel modules" if "Open Kernel Module" in text else "proprietary kernel modules"
    values = {"version": version, "open": "Open Kernel Module" in text}
    if match and int(match.group(1)) < _NEEDED_DRIVER:
        yield Finding(
            "NVIDIA driver",
            Level.MISSING,
            f"{version}, {kind}",
            "too old for CUDA 13, for which kernels are compiled",
            _INSTALL,
            values=values,
        )
    else:
        yield Finding("NVIDIA driver", Level.OK, f"{version}, {kind}", values=values)


def _cuda_device(cuda: Any, number: int) -> Finding:
    _, device = cuda.cuDeviceGet(number)
    _, raw_name = cuda.cuDeviceGetName(64, device)
    name = bytes(raw_name).split(b"\0")[0].decode(errors="replace")
    _, memory = cuda.cuDeviceTotalMem(device)

    def attribute(key: str) -> int:
        _, value = cuda.cuDeviceGetAttribute(getattr(cuda.CUdevice_attribute, key), device)
        return int(value)

    capability = (
        attribute("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR"),
        attribute("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR"),
    )
    values = {
        "device": f"cuda:{number}",
        "name": name,
        "memory": int(memory),
        "compute_capability": f"{capability[0]}.{capability[1]}",
        "multiprocessors": attribute("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT"),
        "dma_buf": bool(attribute("CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED")),
    }
    found = f"cuda:{number}: {name}, {gib(int(memory))}, compute capability {capability[0]}.{capability[1]}"
    if capability < _NEEDED_CAPABILITY:
        return Finding(
            "CUDA",
            Level.MISSING,
            found,
            "older than what kernels are compiled for",
            "a GPU of compute capability 8.0 (Ampere) or newer",
            values=values,
        )
    return Finding("CUDA", Level.OK, found, values=values)
