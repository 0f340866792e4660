#!/bin/sh
# Run fio as bench-fio does on three disks, and pack what it wrote. The disks are loop devices in memory that a throttle
# (blkio, cgroup v1) limits to 1000, 2000 and 3000 I/Os a second: so slow that other work on the machine hardly changes the
# results, so the pictures have a truth and the files are small. A pause of 4 ms after every full queue (thinktime) stands for
# the latency of a disk.
# Needs root, fio and a blkio hierarchy; six minutes. Usage: record.sh ARCHIVE.tar.xz
set -eu
archive=$(realpath "$1")
work=$(mktemp -d /dev/shm/iodelta-gallery.XXXXXX)
group=/sys/fs/cgroup/blkio/iodelta-gallery.$$
loop=
finish() {
    cd /
    if [ -n "$loop" ]; then losetup -d "$loop"; fi
    if [ -d "$group" ]; then rmdir "$group"; fi
    rm -r "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM
mkdir "$group" "$work/results"

measure() ( # NAME fio options
    name=$1
    shift
    sh -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$group" fio --name="$name" --filename="$loop" --direct=1 \
        --ioengine=libaio --time_based --group_reporting --output-format=json+ --output="$name.json" "$@"
)

limit() { # what of the device, and to how many a second: 0 is no limit
    echo "$(lsblk -ndo MAJ:MIN "$loop" | tr -d ' ') $2" > "$group/blkio.throttle.$1_device"
}

for disk in disk-a=1000 disk-b=2000 disk-c=3000; do
    most=${disk#*=}
    name=${disk%=*}
    truncate -s 256m "$work/image"
    loop=$(losetup -f --show "$work/image")
    mkdir -p "$work/results/$name/4k"
    cd "$work/results/$name/4k"
    fio --name=fill --filename="$loop" --bs=1m --rw=write --direct=1 --output=/dev/null
    limit read_iops "$most"
    limit write_iops $((most / 2))
    for jobs in 1 2 4; do
        for depth in 1 2 4 8 16 32; do
            measure "randread-$depth-$jobs" --rw=randread --bs=4k --iodepth="$depth" --numjobs="$jobs" --runtime=4s \
                --thinktime=4ms --thinktime_blocks="$depth"
        done
    done
    # The throttle counts in slices of 100 ms: windows of a log hold whole ones.
    for depth in 1 16; do
        logs="randrw-iodepth-$depth-numjobs-1"
        measure "randrw-$depth-1" --rw=randrw --rwmixread=70 --bs=4k --iodepth="$depth" --runtime=5s \
            --log_avg_msec=200 --log_hist_msec=400 --write_bw_log="$logs" --write_iops_log="$logs" \
            --write_lat_log="$logs" --write_hist_log="$logs"
    done
    # The cache of the disk is full after three seconds.
    limit write_iops 0
    limit write_bps $((most * 16384))
    measure write-8-1 --rw=write --bs=64k --iodepth=8 --runtime=8s --log_avg_msec=200 --write_bw_log=write &
    sleep 3
    limit write_bps $((most * 4096))
    wait $!
    rm -f ./*_slat.*.log ./*_clat.*.log
    losetup -d "$loop"
    loop=
    rm "$work/image"
done
tar -C "$work/results" --sort=name --owner=0 --group=0 -cJf "$archive" .
