"""Kernels as packages have them: the image within the image, and modules that need others."""

from __future__ import annotations

import lzma
import struct
from pathlib import Path

import pyarrow as pa
import pytest

from tests.guests.kernel import Kernel, elf_of, needs


def boot_image(payload: bytes) -> bytes:
    """Five sectors of setup, 32 bytes of other code, and the payload with its unpacked size after it."""
    image = bytearray(5 * 512 + 32)
    image[0x1F1] = 4
    struct.pack_into("<II", image, 0x248, 32, len(payload))
    return bytes(image) + payload + b"the end"


def test_the_kernel_is_taken_out_of_its_image() -> None:
    kernel = b"\x7fELF" + bytes(100_000)
    packed = pa.Codec("zstd").compress(kernel, asbytes=True) + struct.pack("<I", len(kernel))
    assert elf_of(boot_image(packed)) == kernel
    other = boot_image(lzma.compress(kernel))
    assert elf_of(other) == other


def test_a_module_says_what_it_needs() -> None:
    assert needs(b"\x7fELF\0license=GPL\0depends=vfio,vfio-pci-core\0name=x\0") == ["vfio", "vfio-pci-core"]
    assert needs(b"\0depends=\0") == []
    assert needs(b"\0softdepends=a\0") == []


def test_modules_load_after_those_that_they_need(tmp_path: Path) -> None:
    for name, needed in {"vfio-pci": "vfio_pci_core,vfio", "vfio-pci-core": "vfio,in", "vfio": ""}.items():
        path = tmp_path / "kernel" / f"{name}.ko.xz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(lzma.compress(b"\0depends=" + needed.encode() + b"\0"))
    (tmp_path / "modules.builtin").write_text("kernel/virt/in.ko\nkernel/fs/virtio-fs.ko\n")
    kernel = Kernel("6", tmp_path / "vmlinux", tmp_path, {})
    names = [path.name for path in kernel.load_order("vfio-pci", "virtio_fs", "vfio")]
    assert names == ["vfio.ko.xz", "vfio-pci-core.ko.xz", "vfio-pci.ko.xz"]
    with pytest.raises(LookupError, match="kernel 6 has no module erofs"):
        kernel.load_order("erofs")
