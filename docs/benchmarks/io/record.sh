#!/usr/bin/env bash
# Records the figures of io-results.md: docs/benchmarks/io/record.sh OUT DISK [bamquery command...]
# OUT gets the JSON files and pictures; DISK is a folder with 8 GB free on the disk to measure. Needs a GPU.
set -uo pipefail
out=$1 disk=$2
shift 2
bamquery=("$@")
[ "${#bamquery[@]}" -gt 0 ] || bamquery=(bamquery)
file=$disk/bamquery-bench.blocks
trap 'rm -f "$file"' EXIT

bench() { # benchmark, name of the JSON file, options
  local benchmark=$1 name=$2
  shift 2
  echo "== bamquery bench $benchmark $*"
  timeout 60 "${bamquery[@]}" bench "$benchmark" "$@" --json "$out/io-$name.json" || echo "exit status $?"
}

bench block block-512 --block-size 512 --extent 8g --duration 2 --paths rings,zero-copy --sweep threads=12,13,14
bench block block-4k --pairs 66 --extent 8g --duration 1
bench block block-64k --block-size 64k --depth 8 --extent 8g --duration 1 --paths rings,zero-copy
bench block write-4k --mix write --pairs 66 --extent 8g --duration 1 --paths rings
bench cache cache-warm --warm --cache-size 1g --extent 1g --duration 1
bench cache cache-miss-512 --page-size 512 --cache-size 256m --extent 8g --duration 1
bench array array-gather --element float64 --cache-size 1g --extent 1g --duration 1
bench block stream --block-size 64k --depth 8 --pattern sequential --extent 4g --duration 1 \
  --paths rings,copy-engine --backing "$file" --keep
sync "$file"
for device in cuda:0 cpu; do
  bench block "disk-4k-${device%:0}" --device "$device" --backing "$file" --direct --keep --extent 4g \
    --pairs 8 --threads 8 --duration 1.5 --paths rings,io_uring --sweep depth=32,64,128,256
  bench block "disk-256k-${device%:0}" --device "$device" --backing "$file" --direct --keep --extent 4g \
    --block-size 256k --pattern sequential --pairs 4 --threads 4 --duration 1.5 --paths rings,io_uring \
    --sweep depth=8,16,32
done
bench block pairs --extent 1g --duration 0.3 --paths rings --sweep pairs=1..128 --plot "$out/io-pairs.png"
bench block depth --pairs 66 --extent 1g --duration 0.3 --paths rings --sweep depth=2..1024 \
  --plot "$out/io-depth.png"
bench block threads --block-size 512 --extent 4g --duration 0.5 --paths rings --sweep threads=1,2,4,8,12,14 \
  --plot "$out/io-threads.png"
bench cache cache-size --pattern zipf --extent 16g --duration 1 --sweep cache-size=1G..8G \
  --plot "$out/io-cache-size.png"
bench block drives --block-size 512 --extent 1g --duration 0.5 --paths rings --drives 4 \
  --sweep profile=optane,znand,980pro --plot "$out/io-drives.png"
