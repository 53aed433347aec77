#!/bin/sh
# on_host FOLDER COMMAND...: run it in that folder as if this were the host. Whatever it writes is lost with the guest.

if [ ! -e /host/root/proc/self ]; then
  mkdir -p /host/files /host/layer
  mount -t virtiofs -o ro host /host/files || exit 125
  mount -t tmpfs layer /host/layer
  mkdir /host/layer/new /host/layer/work /host/root
  mount -t overlay -o lowerdir=/host/files,upperdir=/host/layer/new,workdir=/host/layer/work host /host/root || exit 125
  mkdir -p /host/root/guest
  for folder in dev proc sys guest; do mount -o bind /$folder /host/root/$folder; done
fi
folder=$1
shift
export HOME=/tmp PATH=/guest/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export NO_COLOR=1 TERM=dumb PYTHONUNBUFFERED=1 PYTHONPATH="$folder"
exec chroot /host/root /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
