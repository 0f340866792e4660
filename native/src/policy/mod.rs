//! Read policies, each written once: a pure function of the state, the copies, the request, the time and a random word.
//!
//! There is no clock, no random source and no memory in here; the simulator and the mirror both drive these functions.

mod btrfs;
pub mod catalogue;
pub mod dm;
mod md;
pub mod state;
#[cfg(test)]
mod tests;
mod weighted;
mod zfs;

pub use state::{Copy, Member, Request, State, Traits};

/// Which of several equally good candidates is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The first in the chunk's stripe order: what a loop with `<` does.
    First,
    /// The one that was taken longest ago.
    Rotate,
    Random,
}

/// A policy with its parameters. Times are ns, sizes bytes. Sources and tie-breaks: `catalogue`.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    Pid,
    RoundRobin { min_contig: u64 },
    Devid { id: u64 },
    JainLatency,
    Latency { age_limit: i32, probes: i32 },
    LatencyRr { percent: u64, min_contig: u64, age_limit: i32, probes: i32 },
    Queue { ties: Ties },
    QueueReads { ties: Ties },
    QueueAdaptive { veto_percent: u64, overflow: u32, window: u64, ties: Ties },
    Hysteresis { rotating: u32, flash: u32 },
    MdRaid1,
    MdRaid10 { far: bool },
    Zfs { rotating_seek: u64, seek_offset: u64, flash_seek: u64, max_active: u32 },
    Bcachefs { square: bool },
    DmQueueLength,
    DmServiceTime,
    DmHistorical { base: u64, threshold: u64 },
    Sed { shift: u32, explore_permille: u64 },
    Random,
}

impl Policy {
    /// The index into `copies` (never empty) that this policy reads from. `random` is a fresh uniform word.
    #[inline]
    pub fn choose(&self, state: &State, copies: &[Copy], request: &Request, now: u64, random: u64) -> usize {
        if copies.len() == 1 {
            return 0;
        }
        match self {
            Policy::Pid => btrfs::pid(copies, request),
            Policy::RoundRobin { min_contig } => btrfs::round_robin(state, copies, *min_contig, |_| true),
            Policy::Devid { id } => btrfs::devid(state, copies, *id),
            Policy::JainLatency => btrfs::lowest(state, copies, |member| member.mean()),
            Policy::Latency { .. } => btrfs::lowest(state, copies, |member| member.checkpoint_mean()),
            Policy::LatencyRr { percent, min_contig, .. } => btrfs::latency_rr(state, copies, *percent, *min_contig),
            Policy::Queue { ties } => btrfs::fewest(state, copies, *ties, random, |m| m.pending()),
            Policy::QueueReads { ties } => btrfs::fewest(state, copies, *ties, random, |m| m.reads),
            Policy::QueueAdaptive { veto_percent, overflow, ties, .. } => {
                btrfs::queue_adaptive(state, copies, *veto_percent, *overflow, *ties, random)
            }
            Policy::Hysteresis { rotating, flash } => btrfs::hysteresis(state, copies, request, *rotating, *flash),
            Policy::MdRaid1 => md::raid1(state, copies),
            Policy::MdRaid10 { far } => md::raid10(state, copies, *far),
            Policy::Zfs { rotating_seek, seek_offset, flash_seek, max_active } => {
                zfs::mirror(state, copies, *rotating_seek, *seek_offset, *flash_seek, *max_active)
            }
            Policy::Bcachefs { square } => weighted::bcachefs(state, copies, *square, random),
            Policy::DmQueueLength => dm::queue_length(state, copies),
            Policy::DmServiceTime => dm::service_time(state, copies, request),
            Policy::DmHistorical { threshold, .. } => dm::historical(state, copies, *threshold, now),
            Policy::Sed { explore_permille, .. } => weighted::shortest_delay(state, copies, *explore_permille, random),
            Policy::Random => weighted::random(copies, random),
        }
    }

    /// Whether it looks at the random word; it need not be drawn otherwise.
    #[inline]
    pub fn is_random(&self) -> bool {
        matches!(self, Policy::Bcachefs { .. } | Policy::Sed { .. } | Policy::Random)
            || matches!(
                self,
                Policy::Queue { ties: Ties::Random }
                    | Policy::QueueReads { ties: Ties::Random }
                    | Policy::QueueAdaptive { ties: Ties::Random, .. }
            )
    }

    /// Age beyond which a member is rehabilitated, and its probes then.
    fn ageing(&self) -> (i32, i32) {
        match self {
            Policy::Latency { age_limit, probes } | Policy::LatencyRr { age_limit, probes, .. } => {
                (*age_limit, *probes)
            }
            _ => (btrfs::AGE_LIMIT, btrfs::PROBES),
        }
    }
}

/// The candidate with the smallest key; the first of equals.
#[inline]
fn smallest<K: PartialOrd>(state: &State, copies: &[Copy], key: impl Fn(&Member, &Copy) -> K) -> usize {
    let mut best = 0;
    let mut least = key(&state.members[copies[0].member as usize], &copies[0]);
    for (index, copy) in copies.iter().enumerate().skip(1) {
        let found = key(&state.members[copy.member as usize], copy);
        if found < least {
            best = index;
            least = found;
        }
    }
    best
}
