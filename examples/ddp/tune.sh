#!/bin/sh
# Tunes train.py, each of whose arms is trained by two processes. Kill it and run it again: it goes on where it was.
journal=$(realpath "${1:-ddp.jsonl}")
cd "$(dirname "$0")" || exit
exec lastarm tune --arms 4 --budget 24 --journal "$journal" \
    --param lr=log:0.001:1 --param momentum=uniform:0:0.9 \
    -- python train.py --lr {lr} --momentum {momentum} --seed {seed} --upto {upto} --state {state}
