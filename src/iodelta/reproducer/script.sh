set -eu
LC_ALL=C
export LC_ALL

say() { printf '%s\n' "$*" >&2; }

die() {
    say "reproduce: $*"
    exit 1
}

# ------------------------------------------------------------------- settings: found, kept, changed, put back

# The value in a kernel file: the word in brackets where it shows a list.
present() {
    text=$(tr '\n\t' '  ' <"$1" | sed 's/  */ /g; s/ $//')
    case $text in
    *"["*"]"*)
        text=${text#*"["}
        text=${text%%"]"*}
        ;;
    esac
    printf '%s' "$text"
}

# Keep what files hold, on disk, before anything is written to them; in this order it is put back.
keep() {
    for file in "$@"; do
        if [ -e "$file" ] && ! grep -qxF "file $file" "$saved"; then
            printf 'file %s\n%s\n' "$file" "$(present "$file")" >>"$saved"
        fi
    done
    sync
}

kept() { file="file $1" awk 'found { print; exit } $0 == ENVIRON["file"] { found = 1 }' "$saved"; }

# Write a value, unless it is there already, and read it back.
put() {
    [ -e "$1" ] || die "there is no $1 on this machine"
    if [ "$(present "$1")" != "$2" ]; then
        printf '%s\n' "$2" >"$1" || die "cannot set $1 to $2: are you root?"
        now=$(present "$1")
        case $2:$now in
        -1:* | "$2:$2" | "$2:$2":*) ;;
        *) die "$1 shows $now, not $2" ;;
        esac
    fi
}

put_all() {
    value=$1
    shift
    for one in "$@"; do put "$one" "$value"; done
}

put_back_all() {
    for one in "$@"; do
        if [ -e "$one" ] && grep -qxF "file $one" "$saved"; then put "$one" "$(kept "$one")"; fi
    done
}

# Several spellings of one setting: to write one makes the others 0, and a 0 cannot be written.
in_force() {
    for file in "$@"; do
        if [ -e "$file" ] && [ "$(present "$file")" != 0 ]; then printf '%s\n' "$file"; fi
    done
}

put_back_either() {
    for one in "$@"; do
        if [ "$(kept "$one")" != 0 ]; then put_back_all "$one"; fi
    done
}

# A scheduler: a change resets what stands beside it, so the original comes back with all of that.
scheduler() {
    for disk in $queues; do
        queue=/sys/block/$disk/queue
        if [ "$(present "$queue/scheduler")" != "$1" ]; then
            put "$queue/scheduler" "$1"
            if [ "$1" = "$(kept "$queue/scheduler")" ]; then
                beside "$queue" | while IFS= read -r one; do
                    if [ -n "$(kept "$one")" ]; then put "$one" "$(kept "$one")"; fi
                done
            fi
        fi
    done
}

scheduler_back() {
    for disk in $queues; do scheduler "$(kept "/sys/block/$disk/queue/scheduler")"; done
}

beside() {
    for one in "$1/nr_requests" "$1"/iosched/* "$1/wbt_lat_usec"; do
        if [ -e "$one" ]; then printf '%s\n' "$one"; fi
    done
}

keep_scheduler() {
    for disk in $queues; do
        queue=/sys/block/$disk/queue
        keep "$queue/scheduler" "$queue/nr_requests" "$queue"/iosched/* "$queue/wbt_lat_usec"
    done
}

in_queues() { for disk in $queues; do printf '/sys/block/%s/queue/%s\n' "$disk" "$1"; done; }

in_disks() { for disk in $disks; do printf '/sys/block/%s/%s\n' "$disk" "$1"; done; }

# The knob's 1 is no_turbo's 0.
boost() {
    if [ -e /sys/devices/system/cpu/cpufreq/boost ]; then
        put /sys/devices/system/cpu/cpufreq/boost "$1"
    else
        put /sys/devices/system/cpu/intel_pstate/no_turbo "$((1 - $1))"
    fi
}

# The user's own commands: number of the one in force, 0 for none.
commanded() {
    if [ "$command" != "$1" ]; then
        if [ "$command" != 0 ]; then undo "$command" || die "command $command could not be undone"; fi
        command=$1
        do_command "$1" || die "command $1 failed"
    fi
    check_command "$1" || die "command $1 does not hold"
}

# A control group of our own with limits, for fio alone.
limit() {
    if [ -z "$group" ]; then
        for place in /sys/fs/cgroup /sys/fs/cgroup/unified; do
            if grep -qw io "$place/cgroup.controllers" 2>/dev/null; then
                group=$place/iodelta-reproduce-$$
                keep_control "$place/cgroup.subtree_control"
                break
            fi
        done
        if [ -z "$group" ] && [ -e /sys/fs/cgroup/blkio/blkio.throttle.read_iops_device ]; then
            group=/sys/fs/cgroup/blkio/iodelta-reproduce-$$
        fi
        [ -n "$group" ] || die "no control group here can limit I/O"
        printf 'group %s\n\n' "$group" >>"$saved"
        mkdir "$group"
    fi
    for disk in $disks; do
        number=$(cat "/sys/block/$disk/dev")
        if [ -e "$group/io.max" ]; then
            printf '%s %s\n' "$number" "$1" >"$group/io.max" || die "cannot limit $disk to $1"
            continue
        fi
        for pair in $1; do
            case ${pair%%=*} in
            rbps) name=read_bps ;;
            wbps) name=write_bps ;;
            riops) name=read_iops ;;
            *) name=write_iops ;;
            esac
            limit=${pair#*=}
            if [ "$limit" = max ]; then limit=0; fi
            printf '%s %s\n' "$number" "$limit" >"$group/blkio.throttle.${name}_device" || die "cannot limit $disk"
        done
    done
}

keep_control() {
    if ! grep -qw io "$1"; then
        printf 'control %s\n\n' "$1" >>"$saved"
        printf '+io\n' >"$1" || die "cannot pass the io controller on in $1"
    fi
}

unlimited() { if [ -n "$group" ]; then limit 'rbps=max wbps=max riops=max wiops=max'; fi; }

# Put everything back, from what is on disk: also after a kill -9, with --restore.
put_back() {
    [ -s "$saved" ] || return 0
    wrong=0
    while IFS= read -r what && IFS= read -r value; do
        case $what in
        "file "*)
            file=${what#file }
            if [ -e "$file" ] && [ "$(present "$file")" != "$value" ]; then
                printf '%s\n' "$value" >"$file" || wrong=1
            fi
            ;;
        "group "*)
            for try in 1 2 3 4 5; do
                if [ ! -d "${what#group }" ] || rmdir "${what#group }" 2>/dev/null; then break; fi
                if [ "$try" = 5 ]; then wrong=1; fi
                sleep 1
            done
            ;;
        "control "*) printf '%s\n' -io >"${what#control }" 2>/dev/null || : ;;
        "undo "*) undo "${what#undo }" || wrong=1 ;;
        esac
    done <"$saved"
    if [ "$wrong" = 0 ]; then
        rm -f "$saved"
        say "reproduce: all settings are as they were"
    else
        say "reproduce: not everything could be put back; it is listed in $saved, and sh $0 --restore $output tries again"
    fi
    return "$wrong"
}

# -------------------------------------------------------------------------------------------------- the target

number_of() { # of a device node, or of the filesystem that holds a file: major:minor
    if [ -b "$1" ]; then
        printf '%d:%d' "0x$(stat -L -c %t -- "$1")" "0x$(stat -L -c %T -- "$1")"
    else
        number=$(stat -L -c %d -- "$1")
        printf '%d:%d' "$((number >> 8 & 4095))" "$((number & 255 | number >> 12 & 1048320))"
    fi
}

disk_of() ( # kernel name of the whole disk of a block device
    path=$(readlink -f "/sys/class/block/$1")
    if [ -e "$path/partition" ]; then path=${path%/*}; fi
    printf '%s\n' "${path##*/}"
)

queues_of() ( # disks with a request queue of their own below a disk
    case $(cat "/sys/block/$1/queue/scheduler" 2>/dev/null) in
    *"["*) printf '%s\n' "$1" ;;
    *)
        found=
        for slave in "/sys/block/$1"/slaves/*; do
            if [ -e "$slave" ]; then
                found=1
                queues_of "$(disk_of "${slave##*/}")"
            fi
        done
        if [ -z "$found" ]; then printf '%s\n' "$1"; fi
        ;;
    esac
)

look_at_target() {
    [ -e "$target" ] || die "there is nothing at $target"
    real=$(readlink -f -- "$target" && echo .) # a substitution cuts every line break at its end
    real=${real%??}
    case $real in
    *";"* | *"#"* | *\\* | *[[:cntrl:]]* | *[[:space:]]) die "fio would take the name $real for another" ;;
    esac
    number=$(number_of "$real")
    names=
    fsid=
    if [ -e "/sys/dev/block/$number" ]; then
        path=$(readlink -f "/sys/dev/block/$number")
        names=${path##*/}
    fi
    if [ ! -b "$real" ]; then
        source=$(df -P -- "$real" | awk 'NR == 2 { print $1 }')
        if [ -z "$names" ] && [ -b "$source" ]; then
            path=$(readlink -f "/sys/dev/block/$(number_of "$source")")
            names=${path##*/}
        fi
    fi
    for name in $names; do
        for path in /sys/fs/btrfs/*/devices/"$name"; do
            if [ -e "$path" ]; then
                fsid=${path#/sys/fs/btrfs/}
                fsid=${fsid%%/*}
            fi
        done
    done
    if [ -n "$fsid" ] && [ ! -b "$real" ]; then
        names=$(for path in /sys/fs/btrfs/"$fsid"/devices/*; do printf '%s\n' "${path##*/}"; done)
    fi
    disks=$(for name in $names; do disk_of "$name"; done | sort -u)
    queues=$(for disk in $disks; do queues_of "$disk"; done | sort -u)
}

target_mount() { df -P -- "$real" | awk 'NR == 2 { sub(/^.*%[ ]+/, ""); print }'; }

# Nothing that is in use is written to, whatever the caller says. Asked again before every trial that writes.
guard() {
    [ "$overwrite" = yes ] || die "this workload overwrites $target: say so with --overwrite"
    if [ ! -b "$real" ]; then
        [ -f "$real" ] || die "$real is neither a block device nor a file"
        case $real in
        /proc/* | /sys/* | /dev/* | /run/*) die "$real belongs to the system" ;;
        esac
        for path in /sys/block/*/loop/backing_file; do
            if [ -e "$path" ] && [ "$(cat "$path")" = "$real" ]; then die "$real is the backing file of a loop device"; fi
        done
        if awk 'NR > 1 { print $1 }' /proc/swaps | grep -qxF -- "$real"; then die "$real is swapped on"; fi
        return 0
    fi
    [ "$(number_of "$real")" = "$number" ] || die "$target is another device now"
    for part in "/sys/class/block/$names"/*/partition; do
        if [ -e "$part" ]; then die "$real has partitions"; fi
    done
    if awk -v number="$number" '$3 == number { found = 1 } END { exit !found }' /proc/self/mountinfo; then
        die "$real is mounted"
    fi
    for path in "/sys/class/block/$names"/holders/* "/sys/class/block/$disks"/holders/* /sys/fs/btrfs/*/devices/"$names"; do
        if [ -e "$path" ]; then die "$real is in use: $path"; fi
    done
    awk 'NR > 1 { print $1 }' /proc/swaps | while read -r swap; do
        if [ -b "$swap" ] && [ "$(number_of "$swap")" = "$number" ]; then die "$real is swapped on"; fi
    done
}

# -------------------------------------------------------------------------------------------- trials

child=
load=
condition=
scratch=

stop() {
    if [ -n "$1" ] && kill -TERM "$1" 2>/dev/null; then
        for try in 1 2 3 4 5 6 7 8 9 10; do
            kill -0 "$1" 2>/dev/null || break
            if [ "$try" = 10 ]; then kill -KILL "$1" 2>/dev/null || :; fi
            sleep 0.2
        done
        wait "$1" 2>/dev/null || :
    fi
}

finish() {
    status=$?
    trap - EXIT
    trap '' HUP INT TERM
    stop "$child"
    stop "$load"
    if [ -n "$scratch" ]; then rm -f -- "$scratch"; fi
    put_back || status=4
    exit "$status"
}

# A load that runs beside the trials; begun again whenever it ends.
begin_load() {
    stop "$load"
    load=
    (
        trap 'kill -TERM "$own" 2>/dev/null; exit 0' TERM
        while :; do
            "$@" </dev/null >/dev/null 2>&1 &
            own=$!
            wait "$own" || sleep 1
        done
    ) &
    load=$!
}

# trial NUMBER CELL VARIANT BLOCK SEED; a BLOCK that ends in c is a conditioning trial, which does not count
trial() {
    if [ "$writes" = yes ] && [ -z "$scratch" ]; then guard; fi
    arm=$2.$3
    arm "$2" "$3"
    place=$output/$(variant_name "$3")
    mkdir -p "$place"
    result=$place/c$2-b$4.json
    seed=$5
    if [ "$settle" != 0 ]; then sleep "$settle"; fi
    workload "$2" "$3"
    code=0
    wait "$child" || code=$?
    child=
    [ "$code" = 0 ] || die "fio ended with $code in trial $1: see $result.log"
    [ -s "$result.log" ] || rm -f "$result.log"
    case $4 in
    *c)
        rm -f "$result"
        say "trial $1 of $trials: $(cell_name "$2"), $(variant_name "$3"), block ${4%c}: does not count"
        return
        ;;
    esac
    rates "$result" | while read -r kind rate; do
        printf '%s\t%s\t%s\t%s\n' "$2" "$3" "$kind" "$rate" >>"$output/trials.tsv"
        say "trial $1 of $trials: $(cell_name "$2"), $(variant_name "$3"), block $4: $kind $rate IOPS"
    done
}

# Start fio with these words of its own.
measure() {
    rm -f "$result"
    launch "$arm" fio --output="$result" --output-format=json+ --eta=never "$@" --randseed="$seed"
}

start() {
    "$@" </dev/null >"$result.log" 2>&1 &
    child=$!
}

rates() {
    awk '/"(read|write|trim)" : \{/ { split($0, part, "\""); kind = part[2] }
        /"iops" : / { rate = $3; sub(/,/, "", rate); if (rate + 0 > 0 && !seen[kind]++) printf "%s %.6g\n", kind, rate }' "$1"
}

summary() {
    [ -s "$output/trials.tsv" ] || return 0
    say ""
    sort -t "$(printf '\t')" -k1,1n -k2,2n -k3,3 -k4,4g "$output/trials.tsv" | awk -F '\t' '
        function flush() {
            if (n) print cell "\t" variant "\t" kind "\t" n "\t" (n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2)
        }
        cell != $1 || variant != $2 || kind != $3 { flush(); n = 0; cell = $1; variant = $2; kind = $3 }
        { v[++n] = $4 }
        END { flush() }' | while IFS="$(printf '\t')" read -r cell variant kind count middle; do
        printf '%s, %s: median of %s trials %s %s IOPS\n' \
            "$(cell_name "$cell")" "$(variant_name "$variant")" "$count" "$middle" "$kind"
    done
    say ""
    say "Medians alone decide nothing, the blocks do. A reader with iodelta says:"
    say "iodelta compare $output --baseline $baseline --name-pattern '{variant}/{cell}-b{replicate}.json'"
}

overwrite=no
group=
# shellcheck disable=SC2016  # expanded by the inner shell
join='echo $$ >"$0" && exec "$@"'
command=0
case ${1-} in
--restore)
    output=${2:?the folder of results}
    saved=$output/saved
    put_back
    exit
    ;;
--overwrite)
    overwrite=yes
    shift
    ;;
-h | --help | "")
    usage
    exit 2
    ;;
esac
target=$1
output=${2:-reproduced-$(date +%Y%m%d-%H%M%S)}
command -v fio >/dev/null || die "fio is not installed"
look_at_target
if [ -n "$scratch_size" ]; then
    [ -d "$real" ] || die "name a directory for the scratch file of $scratch_size bytes"
elif [ "$writes" = yes ]; then
    guard
fi
[ ! -e "$output" ] || die "there is a $output already"
mkdir -p "$output"
saved=$output/saved
: >"$saved"
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
save
if [ -n "$scratch_size" ]; then
    scratch=$(mktemp "$real/iodelta-scratch.XXXXXX")
    say "reproduce: writing $scratch"
    fio --output=/dev/null --name=layout --filename="$(printf '%s' "$scratch" | sed 's/:/\\:/g')" --size="$scratch_size" \
        --rw=write --bs=1m --ioengine=psync --refill_buffers=1 --end_fsync=1 </dev/null &
    child=$!
    wait "$child"
    child=
    real=$scratch
fi
named=$(printf '%s' "$real" | sed 's/:/\\:/g')
run_all
summary
