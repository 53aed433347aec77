# Functions for init and for steps that are shell; `guest NAME ...` runs them from programs.

uptime_s() { cut -d ' ' -f 1 /proc/uptime; }

# check NAME DETAIL CONDITION...: the result is that of the condition, a command.
check() {
  check_line="$1: $2"
  shift 2
  if "$@"; then echo "ok $check_line"; else echo "FAIL $check_line"; fi
}
skip() { echo "skip $1: $2"; }

# exit_guest VALUE: at once, after what was printed has left the port.
exit_guest() {
  usleep 50000
  exit_code "$1"
  poweroff -f
}

# step NAME SECONDS COMMAND...: run it, at most so long; its lines are between "begin" and "end".
step() {
  step_name=$1
  step_s=$2
  shift 2
  echo "begin $step_name $(uptime_s)"
  timeout -s KILL "$step_s" "$@"
  step_status=$?
  echo "end $step_name $step_status $(uptime_s)"
}

# nvme_addresses: PCI addresses of all NVMe controllers, in order.
nvme_addresses() {
  for device in /sys/bus/pci/devices/*; do
    [ "$(cat "$device/class")" = 0x010802 ] && basename "$device"
  done
}

# driver_of ADDRESS: the kernel's driver that has it, or nothing.
driver_of() {
  [ -e "/sys/bus/pci/devices/$1/driver" ] && basename "$(readlink "/sys/bus/pci/devices/$1/driver")"
}

# bind ADDRESS DRIVER: give it to this driver, "none" for nobody; fails where it ends up elsewhere.
bind() {
  device=/sys/bus/pci/devices/$1
  [ -e "$device/driver" ] && echo "$1" >"$device/driver/unbind"
  if [ "$2" = none ]; then
    echo >"$device/driver_override"
    [ -z "$(driver_of "$1")" ]
  else
    echo "$2" >"$device/driver_override"
    echo "$1" >/sys/bus/pci/drivers_probe
    [ "$(driver_of "$1")" = "$2" ]
  fi
}

# kill_when TEXT SECONDS COMMAND...: start it, and `kill -9` it once it has printed TEXT; fails where it does not.
# `when_printed`, where a script has it, is called in between.
kill_when() {
  kill_text=$1
  kill_tries=$(($2 * 20))
  shift 2
  "$@" >/tmp/killed 2>&1 &
  kill_pid=$!
  until grep -q "$kill_text" /tmp/killed; do
    kill_tries=$((kill_tries - 1))
    [ -d "/proc/$kill_pid" ] && [ $kill_tries -gt 0 ] || break
    usleep 50000
  done
  if type when_printed >/dev/null; then when_printed; fi
  kill -9 $kill_pid 2>/dev/null
  wait $kill_pid 2>/dev/null
  cat /tmp/killed
  grep -q "$kill_text" /tmp/killed
}

# pinned_pages: of all processes, by whatever pins them: VFIO does, and so does io_uring.
pinned_pages() {
  cat /proc/sys/vm/stat_refresh # processors' own counts are added
  awk '/^nr_foll_pin_acquired/ { n += $2 } /^nr_foll_pin_released/ { n -= $2 } END { print n }' /proc/vmstat
}

# iommu_faults: what the IOMMU refused, as the kernel reported it.
iommu_faults() { dmesg | grep -i 'DMAR:.*fault' || true; }
