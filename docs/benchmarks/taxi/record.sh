#!/bin/sh
# Measures Q1-Q5 as docs/benchmarks/taxi.md shows them: record.sh FOLDER [REAL_FILES...]
#
# FOLDER, an absolute path, takes about 3 GB. REAL_FILES are TLC files; without any, the bundled sample is used.
# Run it as root for caches that are really cold, on a machine that does nothing else.
set -eu
folder=$1
shift
bamquery=${BAMQUERY:-bamquery}
mkdir -p "$folder"
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- ../../../queries/sample/*.parquet

$bamquery taxi generate "$folder/generated.bq" --rows 20M --order random --match-share 0.0003 \
  --no-nulls --replace
$bamquery taxi load "$folder/real.bq" --replace "$@"

for data in generated real; do
  table=trips
  [ $data = real ] || table=generated
  for maps in on off; do
    $bamquery taxi run "$folder/$data.bq" --table $table --against duckdb,pyarrow,polars --zone-maps $maps --repeat 9 \
      --json taxi-$data-warm-maps-$maps.json
    $bamquery taxi run "$folder/$data.bq" --table $table --against duckdb,pyarrow,polars --zone-maps $maps --repeat 5 --cold \
      --json taxi-$data-cold-maps-$maps.json
  done
  $bamquery taxi run "$folder/$data.bq" --table $table --reader direct --repeat 5 --cold --json taxi-$data-cold-direct.json
done
$bamquery taxi draw taxi-generated-warm-maps-on.json taxi-generated-warm-maps-off.json --plot q1-q5.png
${PYTHON:-python3} taxi_tables.py >../taxi-results.md
