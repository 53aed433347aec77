#!/usr/bin/env bash
# Records the figures of gpu-results.md: docs/benchmarks/gpu/record.sh OUT FOLDER [bamquery command...]
# OUT gets the JSON files and pictures; FOLDER, on tmpfs or with page cache to spare, the tables. Needs a GPU.
#
#   ROWS     of the large table (400M: 21 GB in FOLDER, and as much memory again for cuDF's pinned columns)
#   SWEEP    rows of the three tables of the selectivity curves (100M: 16 GB in FOLDER)
#   DISK     a folder on a disk, for cold caches; empty: none
#   COLD     rows of the table there (100M: 5 GB)
#   AGAINST  what to compare with
#   STEPS    which of the steps below, in their order
#   KEEP     anything: leave the tables there
set -uo pipefail
out=$(realpath "$1") folder=$(realpath -m "$2")
shift 2
bamquery=("$@")
[ "${#bamquery[@]}" -gt 0 ] || bamquery=(bamquery)
rows=${ROWS:-400M} sweep=${SWEEP:-100M} disk=${DISK:-} cold=${COLD:-100M}
against=${AGAINST:-cudf-pinned,cudf-parquet,cudf-filters,duckdb}
steps=${STEPS:-stream generate warm timeline first sweep cold}
device=${DEVICE:-cuda:0}
failed=0
mkdir -p "$out" "$folder"

step() { # seconds it may take, command
  local limit=$1 begun=$SECONDS status
  shift
  echo "== $*"
  timeout "$limit" "${bamquery[@]}" "$@"
  status=$?
  [ $status -eq 0 ] || { failed=1 && echo "exit status $status"; }
  echo "== $((SECONDS - begun)) s"
}

generate() { # database, table, rows, order
  step 300 taxi generate "$1" --table "$2" --rows "$3" --order "$4" --match-share 0.0003 --no-nulls --replace
}

run() { # name of the JSON file, database, options
  local name=$1 database=$2
  shift 2
  step 400 taxi run "$database" --table generated --device "$device" "$@" --json "$out/gpu-$name.json"
}

tidy() { # database
  [ -n "${KEEP:-}" ] || rm -rf "$1" "$1".*.parquet
}

for name in $steps; do
  case $name in
    stream)
      for backing in memory file; do
        options=()
        [ $backing = memory ] || options=(--backing "$folder/bamquery-bench.blocks")
        step 120 bench block --device "$device" --block-size 64k --depth 8 --pattern sequential --extent 4g \
          --duration 1 --paths rings,copy-engine "${options[@]}" --json "$out/gpu-stream-$backing.json"
        rm -f "$folder/bamquery-bench.blocks"
      done
      ;;
    generate)
      generate "$folder/large.bq" generated "$rows" random
      ;;
    warm)
      for maps in off on; do
        run "warm-maps-$maps" "$folder/large.bq" --against "$against" --zone-maps $maps --repeat 7 \
          --plot "$out/gpu-warm-maps-$maps.png"
      done
      ;;
    timeline)
      for maps in off on; do
        step 60 taxi timeline "$folder/large.bq" --device "$device" --zone-maps $maps \
          --json "$out/timeline-maps-$maps.json" --plot "$out/gpu-timeline-maps-$maps.png"
      done
      ;;
    first) # The runs before have left their kernels in the cache on disk.
      for maps in off on; do
        run "first-maps-$maps" "$folder/large.bq" --queries q5 --zone-maps $maps --repeat 5
      done
      tidy "$folder/large.bq"
      ;;
    sweep)
      for order in random time clustered; do
        generate "$folder/orders.bq" $order "$sweep" $order
      done
      for maps in on off; do
        step 500 taxi selectivity "$folder/orders.bq" --tables random,time,clustered --device "$device" \
          --zone-maps $maps --json "$out/gpu-selectivity-maps-$maps.json" \
          --plot "$out/gpu-selectivity-maps-$maps.png"
      done
      tidy "$folder/orders.bq"
      ;;
    cold)
      [ -n "$disk" ] || continue
      generate "$disk/cold.bq" generated "$cold" random
      others=$(tr , '\n' <<<"$against" | grep -v cudf-pinned | paste -sd ,) # it would read files, then pin
      for reader in mapped direct; do
        run "cold-$reader" "$disk/cold.bq" --reader $reader --repeat 3 --cold ${others:+--against "$others"}
      done
      tidy "$disk/cold.bq"
      ;;
    *)
      echo "no step is called $name"
      failed=1
      ;;
  esac
done
exit $failed
