//! The policies by name: rule, source, tie-break, parameters; and a text such as `round-robin:256k` made into one.

use super::{Policy, Ties};

/// A number that a policy takes. What a source leaves open is such a parameter, and `meaning` says so.
pub struct Parameter {
    pub name: &'static str,
    pub default: &'static str,
    pub meaning: &'static str,
}

pub struct Entry {
    pub name: &'static str,
    pub rule: &'static str,
    pub source: &'static str,
    pub ties: &'static str,
    pub parameters: &'static [Parameter],
}

const fn parameter(name: &'static str, default: &'static str, meaning: &'static str) -> Parameter {
    Parameter { name, default, meaning }
}

const AGE_LIMIT: Parameter = parameter("age_limit", "10000", "selections until a member is rehabilitated");
const PROBES: Parameter = parameter("probes", "100", "selections for which it then counts as unknown");
const MIN_CONTIG: Parameter = parameter("min_contig", "256k", "bytes read before the next member's turn");
const TIES: Parameter = parameter("ties", "first", "first, rotate or random; the source does not say");

pub const CATALOGUE: &[Entry] = &[
    Entry {
        name: "pid",
        rule: "submitter's pid modulo the copies, in the chunk's stripe order",
        source: "btrfs fs/btrfs/volumes.c find_live_mirror, 6.14",
        ties: "none arise",
        parameters: &[],
    },
    Entry {
        name: "round-robin",
        rule: "sectors read by the whole filesystem / min_contig, modulo the copies sorted by devid",
        source: "btrfs fs/btrfs/volumes.c btrfs_read_rr, 6.14 (experimental option)",
        ties: "equal devids by stripe order",
        parameters: &[MIN_CONTIG],
    },
    Entry {
        name: "devid",
        rule: "the first copy on that devid, else the first stripe",
        source: "btrfs fs/btrfs/volumes.c btrfs_read_preferred, 6.14 (experimental option)",
        ties: "the first",
        parameters: &[parameter("id", "1", "devid")],
    },
    Entry {
        name: "jain-latency",
        rule: "lowest mean read latency since the mount; unknown counts as 0",
        source: "A. Jain, btrfs read policy series 2020-21, v2 of October 2024",
        ties: "the first in stripe order",
        parameters: &[],
    },
    Entry {
        name: "latency",
        rule: "lowest mean read latency since the member's checkpoint",
        source: "kakra, btrfs patches PR 36 (6.12 branch), from its text",
        ties: "the first in stripe order (not documented)",
        parameters: &[AGE_LIMIT, PROBES],
    },
    Entry {
        name: "latency-rr",
        rule: "round-robin over members within percent of the lowest latency since checkpoint; unknown ones are offered",
        source: "kakra, btrfs patches PR 36 (6.12 branch), from its text and one function",
        ties: "as round-robin",
        parameters: &[
            parameter("percent", "125", "of the best latency, up to which a member takes part"),
            MIN_CONTIG,
            AGE_LIMIT,
            PROBES,
        ],
    },
    Entry {
        name: "queue",
        rule: "fewest reads and writes in flight",
        source: "kakra, btrfs patches PR 36 and PR 40 (6.18 branch), from their text",
        ties: "parameter",
        parameters: &[TIES],
    },
    Entry {
        name: "queue-reads",
        rule: "fewest reads in flight; writes do not count",
        source: "asked for by kakra beside the gist of May 2025; no implementation known",
        ties: "parameter",
        parameters: &[TIES],
    },
    Entry {
        name: "queue-adaptive",
        rule: "queue, passing over a member of bad recent latency unless the healthy one is busier by overflow",
        source: "kakra, btrfs patches PR 40 (6.18 branch): known from its counters (health, vetoed, overflow) only",
        ties: "parameter",
        parameters: &[
            parameter("veto_percent", "200", "of the best recent latency, beyond which a member is vetoed (unknown)"),
            parameter("overflow", "8", "more in flight on the healthy one before the vetoed is taken (unknown)"),
            parameter("window_ms", "1000", "memory of the recent latency (unknown)"),
            TIES,
        ],
    },
    Entry {
        name: "hysteresis",
        rule: "pid's choice, or the flash member of a mixed pair, unless another has fewer in flight by more than a margin",
        source: "T. Titovets, btrfs series v9, 2020",
        ties: "the first in stripe order",
        parameters: &[parameter("rotating", "8", "margin"), parameter("flash", "2", "margin where all are flash")],
    },
    Entry {
        name: "md-raid1",
        rule: "sequential stays; any flash or idle: fewest pending; else nearest head",
        source: "drivers/md/raid1.c choose_best_rdev, 6.12",
        ties: "the first member",
        parameters: &[],
    },
    Entry {
        name: "md-raid10",
        rule: "fewest pending flash copy; else nearest head, an idle member being at distance 0",
        source: "drivers/md/raid10.c read_balance, 6.12",
        ties: "the first copy",
        parameters: &[parameter("far", "0", "1 for the far layout: lowest address")],
    },
    Entry {
        name: "zfs",
        rule: "least active I/Os (at most max_active reads count) + 0, half or all of an increment by how far the head has to go",
        source: "OpenZFS 2.2 module/zfs/vdev_mirror.c vdev_mirror_load, vdev_queue.c vdev_queue_length",
        ties: "offset in units of 2 MiB modulo the tied members",
        parameters: &[
            parameter("rotating_seek", "5", "increment for a seek on a rotating member; half within seek_offset"),
            parameter("seek_offset", "1m", "bytes"),
            parameter("flash_seek", "1", "increment on flash that is not sequential"),
            parameter("max_active", "10", "reads, and writes, that a member has at once; more wait and do not count"),
        ],
    },
    Entry {
        name: "bcachefs",
        rule: "each copy in turn replaces the choice so far with the odds of their inverse mean latencies (weight 1/32): \
               of three equal copies the last is read half of the time, the others a quarter each",
        source: "fs/bcachefs/extents.c bch2_bkey_pick_read_device, ptr_better and bch2_latency_acct, 6.12",
        ties: "none arise",
        parameters: &[parameter("square", "0", "1 squares the latencies, as later versions do")],
    },
    Entry {
        name: "queue-length",
        rule: "fewest outstanding",
        source: "drivers/md/dm-ps-queue-length.c, 6.12",
        ties: "the one taken longest ago",
        parameters: &[],
    },
    Entry {
        name: "service-time",
        rule: "(bytes in flight + incoming) / the operator's weight of the member",
        source: "drivers/md/dm-ps-service-time.c st_compare_load, 6.12",
        ties: "the heavier weight, then the one taken longest ago",
        parameters: &[],
    },
    Entry {
        name: "historical-service-time",
        rule: "(1 + outstanding) x time-weighted mean service time; stale members get a probe, or equal use",
        source: "drivers/md/dm-ps-historical-service-time.c hst_compare, 6.12",
        ties: "the one taken longest ago",
        parameters: &[
            parameter("base", "972", "weight of the past per 16.8 ms, of 1024"),
            parameter("threshold", "0", "means closer than this factor count as equal; 0 never"),
        ],
    },
    Entry {
        name: "sed",
        rule: "shortest expected delay: mean latency x (in flight + 1), with some exploration",
        source: "textbook (join the shortest expected delay); weight and exploration are ours",
        ties: "the first in stripe order",
        parameters: &[
            parameter("shift", "3", "the mean's weight is 2^-shift"),
            parameter("explore_permille", "10", "reads per thousand that go anywhere"),
        ],
    },
    Entry {
        name: "random",
        rule: "any copy, each as likely",
        source: "the placebo",
        ties: "none arise",
        parameters: &[],
    },
];

/// A policy from `name`, `name:value` (its first parameter) or `name:key=value,key=value`.
pub fn parse(text: &str) -> Result<Policy, String> {
    let (name, given) = text.split_once(':').unwrap_or((text, ""));
    let entry = CATALOGUE.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let known: Vec<&str> = CATALOGUE.iter().map(|entry| entry.name).collect();
        format!("no read policy {name:?}; known: {}", known.join(", "))
    })?;
    let mut values: Vec<&str> = entry.parameters.iter().map(|parameter| parameter.default).collect();
    for part in given.split(',').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((entry.parameters.first().map_or("", |p| p.name), part));
        let index = entry.parameters.iter().position(|parameter| parameter.name == key).ok_or_else(|| {
            let known: Vec<&str> = entry.parameters.iter().map(|parameter| parameter.name).collect();
            format!("{name} has no parameter {key:?}; it takes {}", or_none(&known.join(", ")))
        })?;
        values[index] = value;
    }
    let number = |index: usize| {
        size(values[index])
            .ok_or_else(|| format!("{name}: {} is {:?}, not a number", entry.parameters[index].name, values[index]))
    };
    let small = |index: usize, least: u64, most: u64| {
        number(index).and_then(|found| {
            if (least..=most).contains(&found) {
                Ok(found)
            } else {
                Err(format!("{name}: {} is {found}, allowed are {least} to {most}", entry.parameters[index].name))
            }
        })
    };
    let contig = |index: usize| {
        small(index, 4096, 1 << 40).and_then(|found| {
            if found % 4096 == 0 {
                Ok(found)
            } else {
                Err(format!("{name}: min_contig is {found}, not a multiple of the sector of 4096"))
            }
        })
    };
    let ties = |index: usize| match values[index] {
        "first" => Ok(Ties::First),
        "rotate" => Ok(Ties::Rotate),
        "random" => Ok(Ties::Random),
        other => Err(format!("{name}: ties is {other:?}, allowed are first, rotate and random")),
    };
    let count = |index: usize, most: i32| small(index, 0, most as u64).map(|found| found as i32);
    Ok(match name {
        "pid" => Policy::Pid,
        "round-robin" => Policy::RoundRobin { min_contig: contig(0)? },
        "devid" => Policy::Devid { id: number(0)? },
        "jain-latency" => Policy::JainLatency,
        "latency" => Policy::Latency { age_limit: count(0, i32::MAX - 1)?, probes: count(1, 1 << 30)? },
        "latency-rr" => Policy::LatencyRr {
            percent: small(0, 100, 1_000_000)?,
            min_contig: contig(1)?,
            age_limit: count(2, i32::MAX - 1)?,
            probes: count(3, 1 << 30)?,
        },
        "queue" => Policy::Queue { ties: ties(0)? },
        "queue-reads" => Policy::QueueReads { ties: ties(0)? },
        "queue-adaptive" => Policy::QueueAdaptive {
            veto_percent: small(0, 100, 1_000_000)?,
            overflow: small(1, 0, 1 << 20)? as u32,
            window: small(2, 1, 3_600_000)? * 1_000_000,
            ties: ties(3)?,
        },
        "hysteresis" => {
            Policy::Hysteresis { rotating: small(0, 0, 1 << 20)? as u32, flash: small(1, 0, 1 << 20)? as u32 }
        }
        "md-raid1" => Policy::MdRaid1,
        "md-raid10" => Policy::MdRaid10 { far: small(0, 0, 1)? == 1 },
        "zfs" => Policy::Zfs {
            rotating_seek: small(0, 0, 1 << 20)?,
            seek_offset: number(1)?,
            flash_seek: small(2, 0, 1 << 20)?,
            max_active: small(3, 1, 1 << 20)? as u32,
        },
        "bcachefs" => Policy::Bcachefs { square: small(0, 0, 1)? == 1 },
        "queue-length" => Policy::DmQueueLength,
        "service-time" => Policy::DmServiceTime,
        "historical-service-time" => {
            Policy::DmHistorical { base: small(0, 0, 1023)?, threshold: small(1, 0, 1 << 20)? }
        }
        "sed" => Policy::Sed { shift: small(0, 0, 20)? as u32, explore_permille: small(1, 0, 1000)? },
        _ => Policy::Random,
    })
}

fn or_none(text: &str) -> &str {
    if text.is_empty() {
        "none"
    } else {
        text
    }
}

/// A number, with k, m or g for powers of 1024.
fn size(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, shift) = match lower.chars().last()? {
        'k' => (&lower[..lower.len() - 1], 10),
        'm' => (&lower[..lower.len() - 1], 20),
        'g' => (&lower[..lower.len() - 1], 30),
        _ => (&lower[..], 0),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}
