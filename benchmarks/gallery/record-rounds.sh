#!/bin/sh
# Prepare a disk and keep what `iodelta prepare` found. The disk is a loop device in memory that a throttle (blkio, cgroup v1)
# limits to 1000 writes a second, and to 300 after 26 MiB of rounds: the transition of an SSD whose spare area is used up.
# Needs root, fio, iodelta on the PATH and a blkio hierarchy; one minute. Usage: record-rounds.sh ROUNDS.json
set -eu
result=$(realpath "$1")
work=$(mktemp -d /dev/shm/iodelta-rounds.XXXXXX)
group=/sys/fs/cgroup/blkio/iodelta-rounds.$$
loop=
watcher=
finish() {
    cd /
    if [ -n "$watcher" ]; then kill "$watcher" 2>/dev/null || true; fi
    if [ -n "$loop" ]; then losetup -d "$loop"; fi
    if [ -d "$group" ]; then rmdir "$group"; fi
    rm -r "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM
mkdir "$group"
truncate -s 64m "$work/image"
loop=$(losetup -f --show "$work/image")

limit() { # writes a second
    echo "$(lsblk -ndo MAJ:MIN "$loop" | tr -d ' ') $1" > "$group/blkio.throttle.write_iops_device"
}

written() { # sectors
    awk '{print $7}' "/sys/block/${loop#/dev/}/stat"
}

limit 1000
full=$(($(written) + (64 + 26) * 2048))
while [ "$(written)" -lt "$full" ]; do sleep 0.05; done && limit 300 &
watcher=$!
cd "$work"
sh -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$group" env IODELTA_STATE="$work/state" \
    iodelta prepare "$loop" --destroy "$loop" --fill 1 --round 1s --limit 60 --spare 50% --folder one -- \
    --rw=randwrite --bs=4k --direct=1 --ioengine=libaio --iodepth=4
cp one/verdict.json "$result"
