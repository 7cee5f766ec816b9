#!/usr/bin/env bash
# Everything once: a simulated fleet, the story as a real run, one harvest, the site. Usage: demo.sh FOLDER
# The programs bench, harvest and reports are taken from PATH.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$1"
mkdir -p "$1"
folder=$(cd "$1" && pwd)
store=file://$folder/store

echo '1 of 4: 60 simulated machines over 14 days'
bench simulate --store "$store" --machines 60 --days 14 --seed 1 --truth "$folder/truth.parquet"
echo '2 of 4: the run that started it all, for real, at a sixtieth of its time (10 s)'
if bench run --store "$store" --spool "$folder/spool" --log daemon="$folder/daemon.log" --machine-id 4242 \
  --price-usd-per-hour 0.296 --min-rate 29.0 -- bash "$here/story.sh" "$folder/daemon.log"; then
  echo 'the story should not pass' >&2
  exit 1
fi
echo '3 of 4: the harvest'
harvest run --store "$store" --data "$folder/data"
echo '4 of 4: the site'
reports build --data "$folder/data" --site "$folder/site"
echo
echo "Open file://$folder/site/index.html"
