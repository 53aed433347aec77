"""What guests are made of works without a driver of ours: IOMMU, VFIO, drives, Python, killed owners."""

from __future__ import annotations

from tests.guests.boot import Boot
from tests.guests.checks import checks_of, outcome_of
from tests.guests.drives import drive
from tests.guests.programs import FOLDER, Program
from tests.guests.steps import program, python, shell

DRIVES = (drive("64M", 512), drive("64M", 4096))
A, B = (each.address_at(index) for index, each in enumerate(DRIVES))

FOUND = f"""
check found "$(echo $(nvme_addresses))" [ "$(echo $(nvme_addresses))" = "{A} {B}" ]
check bound "$(driver_of {A}) $(driver_of {B})" [ "$(driver_of {A}) $(driver_of {B})" = "vfio-pci vfio-pci" ]
check faults "the IOMMU refused nothing yet: $(iommu_faults | wc -l)" [ -z "$(iommu_faults)" ]
"""

KILLED = f"""
before=$(pinned_pages)
when_printed() {{ pinned=$(pinned_pages); }}
for round in 1 2 3; do
  check killed-$round "the owner got the drive" kill_when holding 20 /guest/programs/holder {A}
done
check pinned "pages: $pinned while it ran" [ "$pinned" -gt "$before" ]
check unpinned "pages: $before before, $(pinned_pages) after" [ "$(pinned_pages)" = "$before" ]
"""

IMAGES = f"""
compare() {{
  bind $1 nvme
  tries=100
  until [ -b $2 ] || [ $tries = 0 ]; do usleep 50000; tries=$((tries - 1)); done
  check drive$3/kernel "blocks of $(cat /sys/block/$(basename $2)/queue/logical_block_size) bytes" \
    [ "$(cat /sys/block/$(basename $2)/queue/logical_block_size)" = $4 ]
  check drive$3/image "what the kernel's driver reads" /guest/programs/compare $2 $3 $4 $((67108864 / $4))
  bind $1 vfio-pci
  check drive$3/back "given back to $(driver_of $1)" [ "$(driver_of $1)" = vfio-pci ]
}}
compare {A} /dev/nvme0n1 0 512
compare {B} /dev/nvme0n1 1 4096
"""

HOST_FILES = f"""
fails() {{ ! "$@"; }}
check guest-refuses "a file in the host's files" fails touch /host/files{FOLDER}/written-by-a-guest
mount -o remount,rw /host/files
check remounted "the guest would write it" grep -q '^host /host/files virtiofs rw' /proc/mounts
check host-refuses "the host does not" fails touch /host/files{FOLDER}/written-by-a-guest
"""

EACH = ("kernel", "image", "back")
HOLDER = Program((FOLDER / "holder.cpp",))
COMPARE = Program((FOLDER / "compare.cpp",))
BOOT = Boot(
    "harness",
    DRIVES,
    (
        shell("controllers", FOUND, checks=("found", "bound", "faults")),
        program(
            "probe",
            Program((FOLDER / "probe.cpp",)),
            A,
            B,
            checks=tuple(f"drive{i}/{what}" for i in (0, 1) for what in ("group", "viable", "registers")),
        ),
        shell(
            "killed",
            KILLED,
            checks=("killed-1", "killed-2", "killed-3", "pinned", "unpinned"),
            files={"guest/programs/holder": HOLDER},
        ),
        shell(
            "images",
            IMAGES,
            checks=tuple(f"drive{i}/{what}" for i in (0, 1) for what in EACH),
            files={"guest/programs/compare": COMPARE},
        ),
        python("python", str(FOLDER / "native.py"), checks=("native", "writes")),
        shell("host-files", HOST_FILES, checks=("guest-refuses", "remounted", "host-refuses")),
    ),
)
test_check = checks_of(BOOT)


def test_what_a_guest_writes_stays_there() -> None:
    outcome_of(BOOT)
    assert not (FOLDER / "written-by-a-guest").exists()
