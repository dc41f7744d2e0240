#!/bin/sh
# Builds the exhaustive checker of lease.pml and prints how many states it stores.
# Needs `spin` (Debian and Ubuntu: apt-get install spin) and a C compiler as `gcc`. Arguments go to spin, e.g.
# -DMAX_ATTEMPTS=3. No -DHC: hash compaction loses states. No partial order reduction: it would leave states out.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
spin -a "$@" "$here/lease.pml" >spin.log 2>&1 || { cat spin.log >&2; exit 1; }

# A truncated search or an error must not look like an answer.
checked() {
    "$@" >pan.log 2>&1 || { cat pan.log >&2; exit 1; }
    grep -q 'errors: 0' pan.log || { cat pan.log >&2; exit 1; }
    if grep -q 'max search depth too small' pan.log; then cat pan.log >&2; exit 1; fi
}
seconds() { sed -n 's/^pan: elapsed time \([0-9.]*\) seconds.*/\1/p' pan.log; }

gcc -O2 -w -DSAFETY -DNOREDUCE -DNOCLAIM -o pan pan.c
checked ./pan -E -m1000000 -w22
sed -n 's/^ *\([0-9][0-9]*\) states, stored.*/\1/p' pan.log
# For the benchmark: the seconds of the search for safety, and of that for liveness under weak fairness, as pan tells them.
if [ -n "${LEASEPROOF_SPIN_TIME:-}" ]; then
    seconds
    gcc -O2 -w -DNOREDUCE -DNFAIR=3 -o pan pan.c
    checked ./pan -a -f -E -N resolved -m10000000 -w24
    seconds
fi
