#!/bin/sh
# Run fio as bench-fio does on three filesystems, each on a loop device in memory, and pack what it wrote.
# Needs root, fio and mkfs of the three; two minutes. Usage: record.sh ARCHIVE.tar.xz
set -eu
archive=$(realpath "$1")
work=$(mktemp -d /dev/shm/iodelta-gallery.XXXXXX)
loop=
finish() {
    cd /
    if mountpoint -q "$work/mounted"; then umount "$work/mounted"; fi
    if [ -n "$loop" ]; then losetup -d "$loop"; fi
    rm -r "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM
mkdir "$work/mounted" "$work/results"
cd "$work/results"

measure() { # NAME fio options
    name=$1
    shift
    fio --name="$name" --filename="$work/mounted/file" --size=256m --bs=4k --direct=1 --ioengine=libaio --time_based \
        --group_reporting --output-format=json+ --output="$name.json" "$@"
}

for filesystem in ext4 xfs btrfs; do
    truncate -s 600m "$work/image"
    loop=$(losetup -f --show "$work/image")
    "mkfs.$filesystem" -q "$loop"
    mount "$loop" "$work/mounted"
    mkdir -p "$filesystem/4k"
    cd "$filesystem/4k"
    fio --name=fill --filename="$work/mounted/file" --size=256m --bs=1m --rw=write --direct=1 --output=/dev/null
    for jobs in 1 2 4; do
        for depth in 1 2 4 8 16 32; do
            measure "randread-$depth-$jobs" --rw=randread --iodepth="$depth" --numjobs="$jobs" --runtime=1500ms
        done
    done
    for depth in 1 16; do
        logs="randrw-iodepth-$depth-numjobs-1"
        measure "randrw-$depth-1" --rw=randrw --rwmixread=70 --iodepth="$depth" --runtime=8s --log_avg_msec=200 \
            --log_hist_msec=400 --write_bw_log="$logs" --write_iops_log="$logs" --write_lat_log="$logs" \
            --write_hist_log="$logs"
    done
    rm -f ./*_slat.*.log
    cd ../..
    umount "$work/mounted"
    losetup -d "$loop"
    loop=
    rm "$work/image"
done
tar -C "$work/results" --sort=name --owner=0 --group=0 -cJf "$archive" ext4 xfs btrfs
