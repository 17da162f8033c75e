#!/usr/bin/env bash
# Runs the rounds that are due, one after the other, each from the last one's selection. Meant for cron:
#
#   15 2 * * *  /opt/semrank/deploy/schedule/next_round.sh /var/lib/semrank "$HOME/semrank.env"
#
# FOLDER/snapshots/NAME are finished snapshots in the order of their names, one a night; FOLDER/rounds/NAME is the round
# of snapshot NAME; FOLDER/seeds.txt starts the first round. A night that was missed is caught up with: every snapshot
# without a finished round gets one, the oldest first. A lock keeps two runs apart. ENVIRONMENT may set SEMRANK (the
# command), OPTIONS (more options of `semrank rank`: a runner, or --max-urls, without which a crawl ends once no score
# reaches --precision), KEEP (rounds and snapshots that are kept).
set -euo pipefail

folder=${1:?usage: next_round.sh FOLDER [ENVIRONMENT]}
if [ ! -d "$folder" ]; then
  echo "next_round.sh: $folder: no such folder, expected one with snapshots/ and seeds.txt" >&2
  exit 2
fi
if [ $# -gt 1 ]; then
  if [ ! -r "$2" ] || [ -d "$2" ]; then
    echo "next_round.sh: $2: can't be read, expected a file that sets SEMRANK, OPTIONS or KEEP" >&2
    exit 2
  fi
  # A name without a folder would be looked for in PATH.
  case $2 in */*) . "$2" ;; *) . "./$2" ;; esac
fi
semrank=${SEMRANK:-semrank}
keep=${KEEP:-30}

exec 9>"$folder/.schedule.lock"
if ! flock --nonblock 9; then
  echo "another run is already working in $folder" >&2
  exit 0
fi

mkdir -p "$folder/rounds"
previous=""
due=0
for snapshot in "$folder"/snapshots/*/; do
  [ -d "$snapshot" ] || continue
  name=$(basename "$snapshot")
  round=$folder/rounds/$name
  if [ ! -e "$round/manifest.json" ]; then
    if [ ! -e "$snapshot/manifest.json" ]; then
      echo "$snapshot is unfinished; its round and later ones wait for it" >&2
      break
    fi
    due=$((due + 1))
    start=(--seeds "$folder/seeds.txt")
    [ -z "$previous" ] || start=(--previous "$previous")
    # shellcheck disable=SC2086  # OPTIONS are words
    $semrank rank --snapshot "${snapshot%/}" "${start[@]}" --output "$round" ${OPTIONS:-}
  fi
  previous=$round
done

if [ $due -eq 0 ]; then
  echo "no round is due in $folder" >&2
fi

# What is older than the last KEEP rounds is not read by any later one: a round carries the harvest of all before it.
find "$folder/rounds" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort | head -n "-$keep" |
  while read -r name; do
    if [ -e "$folder/rounds/$name/manifest.json" ]; then
      rm -rf "${folder:?}/snapshots/$name" "${folder:?}/rounds/$name"
    fi
  done
