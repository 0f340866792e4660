#!/bin/sh
# Run fio on ext4, XFS and btrfs, and pack what it wrote. Each filesystem is on a loop device in memory that a throttle (blkio,
# cgroup v1, of the root group, in which the filesystems' own threads write) limits to 2000 I/Os a second: what differs is how
# many I/Os each filesystem makes of one write. In each round every workload runs on all three; the six rounds have the six
# orders of three. Needs root, fio, a blkio hierarchy and mkfs of all three; five minutes. Usage: record-filesystems.sh ARCHIVE.tar.xz
set -eu
archive=$(realpath "$1")
work=$(mktemp -d /dev/shm/iodelta-filesystems.XXXXXX)
throttle=/sys/fs/cgroup/blkio/blkio.throttle
loops=
limit() { # loop device, and to how many I/Os a second: 0 is no limit
    for what in read write; do
        echo "$(lsblk -ndo MAJ:MIN "$1" | tr -d ' ') $2" > "${throttle}.${what}_iops_device"
    done
}
finish() {
    cd /
    for loop in $loops; do limit "$loop" 0; done
    for type in ext4 xfs btrfs; do umount "$work/$type" 2>/dev/null || true; done
    for loop in $loops; do losetup -d "$loop"; done
    rm -r "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

for type in ext4 xfs btrfs; do
    mkdir -p "$work/$type" "$work/results/$type"
    truncate -s 512m "$work/$type.image"
    "mkfs.$type" -q "$work/$type.image"
    loop=$(losetup -f --show "$work/$type.image")
    loops="$loops $loop"
    mount "$loop" "$work/$type"
    fio --name=fill --filename="$work/$type/file" --rw=write --bs=1m --size=64m --end_fsync=1 --output=/dev/null
    limit "$loop" 2000
done

measure() { # filesystem, name, fio options
    type=$1 name=$2
    shift 2
    fio --name="$name" --filename="$work/$type/file" --size=64m --time_based --runtime=2s --ramp_time=300ms --bs=4k \
        --group_reporting --output-format=json --output="$work/results/$type/$name-$round.json" "$@"
}

all() { # name, fio options
    for type in $order; do measure "$type" "$@"; done
}

round=0
for order in "ext4 xfs btrfs" "btrfs xfs ext4" "xfs btrfs ext4" "ext4 btrfs xfs" "btrfs ext4 xfs" "xfs ext4 btrfs"; do
    round=$((round + 1))
    all read-1 --rw=randread --ioengine=libaio --direct=1 --iodepth=1
    all read-16 --rw=randread --ioengine=libaio --direct=1 --iodepth=16
    all write-16 --rw=randwrite --ioengine=libaio --direct=1 --iodepth=16
    all append-fsync --rw=write --ioengine=psync --fsync=1
    all write-fsync --rw=randwrite --ioengine=psync --fsync=1
done
tar -C "$work/results" --sort=name --owner=0 --group=0 -cJf "$archive" .
