#!/bin/sh
# Measures Q1-Q5 as docs/benchmarks/taxi.md shows them: taxi.sh FOLDER REAL_FILES...
#
# FOLDER takes about 3 GB. REAL_FILES are TLC files; without any, the bundled sample is used.
# Run it as root for caches that are really cold, on a machine that does nothing else.
set -eu
folder=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
bamquery=${BAMQUERY:-bamquery}
[ $# -gt 0 ] || set -- "$here"/../../queries/sample/*.parquet

mkdir -p "$folder"
cd "$folder"
$bamquery taxi generate generated.bq --table trips --rows 20M --order random --match-share 0.0003 --no-nulls --replace
$bamquery taxi load real.bq --replace "$@" >/dev/null

for data in generated real; do
  for maps in on off; do
    $bamquery taxi run $data.bq --against duckdb,pyarrow,polars --repeat 9 --zone-maps $maps \
      --json "$here/taxi-$data-warm-maps-$maps.json"
    $bamquery taxi run $data.bq --against duckdb,pyarrow,polars --repeat 5 --zone-maps $maps --cold \
      --json "$here/taxi-$data-cold-maps-$maps.json"
  done
  $bamquery taxi run $data.bq --repeat 5 --cold --reader direct --json "$here/taxi-$data-cold-direct.json"
done
$bamquery taxi draw "$here"/taxi-generated-warm-maps-on.json "$here"/taxi-generated-warm-maps-off.json \
  --plot "$here/q1-q5.png"
