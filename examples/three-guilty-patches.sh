#!/bin/sh
# Answer a report of several guilty patches with a planted history: bisect names them, attribute says what each costs.
#
# After the mail of January 2010: "Bisect is very unstable. The related patches are many instead of just one." 8 processes
# read 12 disks x 2 partitions x 8 files (directories here) through mmap, at random, 64k each. Each commit changes how they wait between reads (fio's thinktime): the
# first guilty one costs by itself, the second and third only together, and one commit between them does not run.
# Usage: three-guilty-patches.sh DIRECTORY    (new; 96 MiB of files, about 10 minutes)
set -eu
place=${1:?usage: three-guilty-patches.sh DIRECTORY}
mkdir "$place"
place=$(cd "$place" && pwd)
commit() { git -C "$place/history" add -A; git -C "$place/history" commit -qm "$1"; }

git init -q -b main "$place/history"
git -C "$place/history" config user.name Planted
git -C "$place/history" config user.email planted@example.org
cd "$place/history"
echo 0 >preemption; echo 0 >fairness; echo 0 >idling; echo 0 >other
cat >measure.sh <<'MEASURE'
# Reads per second of eight processes on all files below $1.
wait=20000
[ "$(cat preemption)" = broken ] && exit 1
[ "$(cat preemption)" = 1 ] && wait=$((wait * 3 / 2))
[ "$(cat fairness)$(cat idling)" = 11 ] && wait=$((wait * 3 / 2))
fio --minimal --name=readers --opendir="$1" --rw=randread --bs=64k --ioengine=mmap --numjobs=8 --randrepeat=0 \
    --group_reporting --invalidate=0 --thinktime="$wait" --thinktime_blocks=1 --time_based --runtime=1 |
    awk -F';' '{ print $8 }'
MEASURE
commit "mmap readers"
good=$(git rev-parse HEAD)
for change in "other 1" "preemption 1" "other 2" "fairness 1" "preemption broken" "preemption 1" "idling 1" "other 3"; do
    set -- $change
    echo "$2" >"$1"
    commit "block: change $1 to $2"
done

for disk in 1 2 3 4 5 6 7 8 9 10 11 12; do
    for part in 1 2; do
        mkdir -p "$place/files/disk$disk/part$part"
        for file in 1 2 3 4 5 6 7 8; do
            head -c 512K /dev/urandom >"$place/files/disk$disk/part$part/file$file"
        done
    done
done
measure="sh measure.sh $place/files"
echo "== Which commits are guilty?"
iodelta bisect --repo "$place/history" --good "$good" --bad HEAD --measure "$measure" --better higher --margin 10% \
    --seed 1 --no-revert --folder "$place/bisect" || [ $? = 1 ]
echo "== What does each cost, alone and together?"
iodelta attribute "$good" --repo "$place/history" --patch HEAD~6 --patch HEAD~4 --patch HEAD~1 --measure "$measure" \
    --better higher --margin 10% --blocks 8 --seed 1 --folder "$place/attribute" || [ $? = 1 ]
