"""A kernel whose VFIO is also had through iommufd, which no kernel of Debian offers (looked at: 6.1 to 7.2).

What it takes is in modules: VFIO's own, and iommufd. They are compiled from Debian's source of the kernel,
against the headers of the one that guests boot, which stays as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.guests.kernel import Kernel, cloud_kernel
from tests.guests.packages import CACHE, UntriedError, locked, unpacked, unpacked_together

_SOURCES: Final = (
    "drivers/vfio",
    "drivers/iommu/iommufd",
    "drivers/iommu/iommu-priv.h",
    "lib/interval_tree.c",
)
_SETTINGS: Final = (
    "CONFIG_IOMMUFD=m",
    "CONFIG_VFIO_DEVICE_CDEV=y",
    "CONFIG_VFIO_MDEV=",
    "CONFIG_DEBUG_INFO_BTF_MODULES=",
)
_FLAGS: Final = "-DCONFIG_IOMMUFD_MODULE -DCONFIG_VFIO_DEVICE_CDEV -DCONFIG_INTERVAL_TREE_SPAN_ITER -g0"
# iommufd walks the gaps of interval trees, which kernels without it leave out of lib/interval_tree.c. The
# rest of that file is in the kernel already: it is not exported twice.
_SPANS: Final = """\
#include <linux/compiler.h>
#include <linux/export.h>
#include <linux/interval_tree.h>
#include <linux/interval_tree_generic.h>
#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(symbol)
#include "../../../lib/interval_tree.c"
"""
_UNPACK_S: Final = 300
_BUILD_S: Final = 600


def iommufd_kernel() -> Kernel:
    """The kernel that guests boot else, with these modules.

    Raises:
        UntriedError: they cannot be compiled here.
        GuestsUnavailableError: apt has not what it takes.
    """
    kernel = cloud_kernel()
    if kernel.options.get("IOMMUFD") and kernel.options.get("VFIO_DEVICE_CDEV"):
        return kernel
    folder = CACHE / f"iommufd-{kernel.release}"
    with locked("iommufd"):
        if not folder.exists():
            part = folder.with_name(f"{folder.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            _build(kernel.release, part)
            part.rename(folder)
    return replace(kernel, rebuilt={path.stem.replace("-", "_"): path for path in folder.glob("*.ko")})


def _build(release: str, folder: Path) -> None:
    """Modules of this kernel, into the folder."""
    version = release.partition("-")[0]
    packages = [f"linux-headers-{release}", f"linux-headers-{version}-common", f"linux-kbuild-{version}"]
    headers = unpacked_together(f"linux-headers-{version}", packages) / "usr" / "src"
    makefile = headers / f"linux-headers-{release}" / "Makefile"
    makefile.write_text(makefile.read_text().replace("include /usr/src/", f"include {headers}/"))
    tree = folder / "tree"
    tree.mkdir(parents=True)
    _unpack_sources(".".join(version.split(".")[:2]), tree)
    iommufd = tree / "drivers" / "iommu" / "iommufd"
    (iommufd / "spans.c").write_text(_SPANS)
    (iommufd / "Makefile").write_text((iommufd / "Makefile").read_text() + "iommufd-y += spans.o\n")
    (tree / "Kbuild").write_text("obj-m += drivers/iommu/iommufd/ drivers/vfio/\n")
    make = [
        "make",
        f"-j{os.cpu_count()}",
        "-C",
        makefile.parent,
        f"M={tree}",
        *_SETTINGS,
        f"KCFLAGS={_FLAGS}",
    ]
    _run([*make, "modules"], _BUILD_S)
    for module in tree.rglob("*.ko"):
        _run(["strip", "--strip-debug", "-o", folder / module.name, module], 60)
    shutil.rmtree(tree)


def _unpack_sources(version: str, tree: Path) -> None:
    """The few of a kernel's sources that it takes; the others are not kept."""
    package = unpacked(f"linux-source-{version}")
    name = f"linux-source-{version}"
    members = [f"{name}/{path}" for path in _SOURCES]
    (archive,) = package.rglob(f"{name}.tar.xz")
    _run(["tar", "-xJf", archive, "-C", tree, "--strip-components=1", *members], _UNPACK_S)
    shutil.rmtree(package)


def _run(command: list[str | Path], seconds: float) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UntriedError(f"iommufd is untried, its modules cannot be made: {error}") from error
    if done.returncode:
        said = " ".join(done.stderr.strip().splitlines()[-3:])
        raise UntriedError(f"iommufd is untried, its modules cannot be made: {command[0]}: {said}")
