#!/bin/sh
# Tunes train.sh on two worker processes. Kill it and run it again: it goes on where it was.
cd "$(dirname "$0")" || exit
exec lastarm tune --arms 32 --budget 960 --workers 2 --journal "${1:-root.jsonl}" \
    --param step=log:0.001:1 --param momentum=uniform:0:0.9 \
    -- ./train.sh {step} {momentum} {upto} {state}
