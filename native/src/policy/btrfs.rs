//! btrfs: the mainline policies (fs/btrfs/volumes.c, 6.14), and those proposed for it by Jain, Titovets and kakra.

use super::state::SECTOR;
use super::{smallest, Copy, Member, Request, State, Ties};

/// kakra's rehabilitation (PR 36 to the 6.12 branch): selections until a member is looked at afresh, and its probes.
pub const AGE_LIMIT: i32 = 10_000;
pub const PROBES: i32 = 100;

/// The submitting thread's pid modulo the copies, over the chunk's own stripe order (`find_live_mirror`).
pub fn pid(copies: &[Copy], request: &Request) -> usize {
    request.pid as usize % copies.len()
}

/// The filesystem-wide count of sectors read, in units of `min_contig`, modulo the copies sorted by devid
/// (`btrfs_read_rr`). `offered` leaves candidates out, as kakra's latency-rr does.
pub fn round_robin(state: &State, copies: &[Copy], min_contig: u64, offered: impl Fn(&Member) -> bool) -> usize {
    let devid = |index: usize| state.members[copies[index].member as usize].traits.devid;
    let count = copies.iter().filter(|copy| offered(&state.members[copy.member as usize])).count();
    let rank = u64::from(state.sectors_read) / (min_contig / SECTOR).max(1) % (count as u64);
    let mut taken = 0;
    for (index, copy) in copies.iter().enumerate() {
        if !offered(&state.members[copy.member as usize]) {
            continue;
        }
        let below = (0..copies.len()).filter(|&other| {
            offered(&state.members[copies[other].member as usize]) && (devid(other), other) < (devid(index), index)
        });
        if below.count() as u64 == rank {
            taken = index;
        }
    }
    taken
}

/// The first candidate of that devid, else the first stripe.
pub fn devid(state: &State, copies: &[Copy], id: u64) -> usize {
    copies.iter().position(|copy| state.members[copy.member as usize].traits.devid == id).unwrap_or(0)
}

/// The lowest mean latency. One without reads has mean 0, so it is tried (`btrfs_find_best_stripe`, Jain 2021).
pub fn lowest(state: &State, copies: &[Copy], mean: impl Fn(&Member) -> u64) -> usize {
    smallest(state, copies, |member, _| mean(member))
}

/// Round-robin over the members whose latency is within `percent` of the best, and those of which none is known.
pub fn latency_rr(state: &State, copies: &[Copy], percent: u64, min_contig: u64) -> usize {
    let means = copies.iter().map(|copy| state.members[copy.member as usize].checkpoint_mean());
    let best = means.filter(|&mean| mean > 0).min().unwrap_or(0);
    let limit = best.saturating_mul(percent) / 100;
    round_robin(state, copies, min_contig, |member| member.checkpoint_mean() <= limit)
}

/// The fewest in flight (kakra's queue: reads and writes, as the block layer counts them for that device).
pub fn fewest(state: &State, copies: &[Copy], ties: Ties, random: u64, count: impl Fn(&Member) -> u32) -> usize {
    match ties {
        Ties::First => smallest(state, copies, |member, _| count(member)),
        Ties::Rotate => smallest(state, copies, |member, _| (count(member), member.taken)),
        Ties::Random => {
            let of = |copy: &Copy| count(&state.members[copy.member as usize]);
            let least = copies.iter().map(of).min().unwrap_or(0);
            let equal = copies.iter().filter(|copy| of(copy) == least).count() as u64;
            let wanted = (((random >> 32) * equal) >> 32) as usize;
            copies.iter().enumerate().filter(|(_, copy)| of(copy) == least).nth(wanted).map_or(0, |(index, _)| index)
        }
    }
}

/// queue, but a member whose windowed mean latency exceeds `veto_percent` of the best candidate's is passed over,
/// unless the healthy one is busier by more than `overflow` (6.18 branch, PR 40: known from its counters only).
pub fn queue_adaptive(
    state: &State,
    copies: &[Copy],
    veto_percent: u64,
    overflow: u32,
    ties: Ties,
    random: u64,
) -> usize {
    let of = |copy: &Copy| &state.members[copy.member as usize];
    let best = copies.iter().map(|copy| of(copy).recent).filter(|&mean| mean > 0).min().unwrap_or(u64::MAX);
    let limit = best.saturating_mul(veto_percent) / 100;
    fewest(state, copies, ties, random, |member| {
        if member.recent > limit {
            member.pending() + overflow + 1
        } else {
            member.pending()
        }
    })
}

/// The pid's choice (or the flash member of a mixed pair), left only when another has fewer in flight by more than 8,
/// or 2 where all are flash (Titovets, v9, 2020).
pub fn hysteresis(state: &State, copies: &[Copy], request: &Request, rotating: u32, flash: u32) -> usize {
    let rotational = |copy: &Copy| state.members[copy.member as usize].traits.rotational;
    let spinning = copies.iter().filter(|copy| rotational(copy)).count();
    let mut start = pid(copies, request);
    if spinning > 0 && spinning < copies.len() && rotational(&copies[start]) {
        start = copies.iter().position(|copy| !rotational(copy)).unwrap_or(start);
    }
    let best = fewest(state, copies, Ties::First, 0, Member::pending);
    let of = |index: usize| state.members[copies[index].member as usize].pending();
    let margin = if spinning == 0 { flash } else { rotating };
    if of(start) > of(best) + margin {
        best
    } else {
        start
    }
}
