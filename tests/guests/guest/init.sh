#!/bin/busybox sh
# The first process of a guest: gets devices ready, runs the steps one after the other, ends the guest.
# What they print goes to the second serial port, the kernel's own lines to the first.

export PATH=/bin:/guest/bin
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /root
/bin/busybox mount -t devtmpfs devices /dev
/bin/busybox mount -t proc processes /proc
/bin/busybox mount -t sysfs system /sys
/bin/busybox --install -s /bin
exec </dev/null >/dev/ttyS1 2>&1
stty -F /dev/ttyS1 -onlcr # lines end as they do elsewhere

. /guest/helpers.sh

for module in $(cat /guest/modules/order); do
  insmod "/guest/modules/$module" || echo "cannot load $module"
done
modules_at=$(uptime_s)
. /guest/drives
echo "guest: kernel $(uname -r), modules loaded at $modules_at s, drives ready at $(uptime_s) s"

. /guest/steps

echo "guest: all steps done at $(uptime_s) s"
exit_guest 16 # QEMU returns 33
