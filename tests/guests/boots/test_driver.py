"""The project's own driver against QEMU's controllers: queues, statuses, resets, killed owners, refusals."""

from __future__ import annotations

from tests.guests.boot import Boot
from tests.guests.checks import checks_of
from tests.guests.drives import Drive, Namespace, drive
from tests.guests.iommufd import iommufd_kernel
from tests.guests.programs import FOLDER, Program, native
from tests.guests.steps import program, shell

NATIVE = native("nvme", "queues/queue_memory", "queues/cpu_queue_client", "status_text")
DRIVE = Program((FOLDER / "drive.cpp", *NATIVE))
OWNER = Program((FOLDER / "owner.cpp", *NATIVE))
PROGRAMS = {"guest/programs/drive": DRIVE, "guest/programs/owner": OWNER}
STATUSES = ("lba-range", "transfer", "opcode", "namespace", "prp-offset", "queue-number")
KINDS = ("registers", "forwarded", "shadow")
CHECKS = (
    "opened",
    *KINDS,
    *(f"status-{name}" for name in STATUSES),
    "unmapped",
    "rings-not-writable",
    "resets",
    *(f"{kind}-rate" for kind in KINDS),
    "statistics",
)

MIB = 1 << 20
ODD = Drive(
    (
        Namespace(4 * MIB, 512, metadata=8),
        Namespace(4 * MIB, 4096),
        Namespace(4 * MIB, 512, metadata=8, protection=1),
        Namespace(4 * MIB, 512),
    )
)
"""Namespaces that the driver takes, and others."""
TOGETHER = (
    Drive((Namespace(4 * MIB),), place="18.0"),
    Drive((Namespace(4 * MIB),), place="18.1"),
)
"""Drives of one IOMMU group."""
DRIVES = (drive("64M", 512), drive("64M", 4096), ODD, *TOGETHER)
A, B, C, D, E = (each.address_at(index) for index, each in enumerate(DRIVES))
KILLS = 20

KILLED = f"""
before=$(pinned_pages)
rounds=0
for round in $(seq {KILLS}); do
  kill_when reading 20 /guest/programs/owner reads {A} || break
  said=$(/guest/programs/owner verifies {A}) && rounds=$((rounds + 1))
done
check killed "$rounds times, then: $said" [ $rounds = {KILLS} ]
check unpinned "pages: $before before, $(pinned_pages) after" [ "$(pinned_pages)" = "$before" ]
"""

ENDED = f"""
for signal in TERM HUP ABRT; do
  /guest/programs/owner reads {A} >/tmp/reading 2>&1 &
  owner=$!
  tries=400
  until grep -q reading /tmp/reading || [ $tries = 0 ]; do usleep 50000; tries=$((tries - 1)); done
  kill -$signal $owner
  wait $owner
  status=$?
  check ended-$signal "status $status, then: $(/guest/programs/owner verifies {A})" [ $status -gt 128 ]
done
"""

REFUSED = f"""
matches() {{ echo "$said" | grep -q "$1"; }}
says() {{ said=$(/guest/programs/owner refused $3 $4); check $1 "$said" matches "$2"; }}
/guest/programs/owner reads {A} >/tmp/reading 2>&1 &
pid=$!
until grep -q reading /tmp/reading; do usleep 50000; done
says in-use "another process has the drive" {A}
kill -9 $pid
wait $pid
bind {B} nvme
says not-bound "kernel's driver nvme.*bamquery nvme bind {B}" {B}
bind {B} none
says no-driver "no driver" {B}
bind {B} vfio-pci
bind {E} nvme
says shared-group "with {E} (nvme)" {D}
bind {E} vfio-pci
says no-device "no PCI device at 0000:7f:00.0" 0000:7f:00.0
says not-nvme "no NVMe controller" 0000:00:00.0
group=/dev/vfio/$(basename $(readlink /sys/bus/pci/devices/{A}/iommu_group))
chmod 666 /dev/vfio/vfio
says no-permission "no permission to open $group" {A} 1000
chown 1000 $group
says memory-limit "65536 in all (RLIMIT_MEMLOCK)" {A} 1000
chown 0 $group
"""
REFUSALS = (
    "in-use",
    "not-bound",
    "no-driver",
    "shared-group",
    "no-device",
    "not-nvme",
    "no-permission",
    "memory-limit",
)

LISTED = f"""
said=$(/guest/programs/owner lists {C} | tr '\\n' '/')
found=0
for reason in 'of 512 bytes; it has 8 bytes of metadata' '2: 1024 blocks of 4096 bytes; taken' \
  'protection information of type 1' '4: 8192 blocks of 512 bytes; taken'; do
  case $said in *"$reason"*) found=$((found + 1)) ;; esac
done
check listed "$said" [ $found = 4 ]
check faults "what the IOMMU refused: $(iommu_faults | tail -1)" [ -n "$(iommu_faults)" ]
"""

BOOT = Boot(
    "driver",
    DRIVES,
    (
        shell("drive0", f"/guest/programs/drive 0 {A}", checks=CHECKS, files=PROGRAMS, seconds=120),
        shell("drive1", f"/guest/programs/drive 1 {B}", checks=CHECKS, seconds=120),
        shell("killed", KILLED, checks=("killed", "unpinned"), seconds=120),
        shell("ended", ENDED, checks=("ended-TERM", "ended-HUP", "ended-ABRT")),
        shell("refused", REFUSED, checks=REFUSALS),
        shell("listed", LISTED, checks=("listed", "faults")),
    ),
    seconds=500,
)
test_check = checks_of(BOOT)

BY_IOMMUFD = Boot(
    "driver-iommufd",
    (drive("64M", 512),),
    (program("drive0", DRIVE, "0", A, checks=CHECKS, seconds=120),),
    kernel=iommufd_kernel,
)
test_by_iommufd = checks_of(BY_IOMMUFD)
