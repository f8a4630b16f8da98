#!/bin/sh
# Approximates the square root of two by gradient descent:
#   train.sh STEP MOMENTUM UPTO STATE
# It goes on from what it left in the folder STATE, until it has made UPTO
# steps in all, and prints its loss as its last line.
touch "$4/progress"
awk -v step="$1" -v momentum="$2" -v upto="$3" '
    { n = $1; x = $2; v = $3 }
    END {
        if (!n) x = 1
        for (; n < upto; n++) { v = momentum * v - step * (x * x - 2); x += v }
        printf "%d %.17g %.17g\n", n, x, v > FILENAME
        loss = x * x - 2
        printf "%.17g\n", loss < 0 ? -loss : loss
    }
' "$4/progress"
