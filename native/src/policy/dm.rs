//! dm multipath selectors: drivers/md/dm-ps-{queue-length,service-time,historical-service-time}.c, 6.12.
//!
//! All three move the path they took to the end of their list, so of equals the one taken longest ago is best.

use std::cmp::Ordering;

use super::{smallest, Copy, Member, Request, State};

const SHIFT: u32 = 10;
const ONE: u64 = 1 << SHIFT;
/// One bucket of the time weighting is 2^24 ns (16.8 ms).
const BUCKET: u32 = 24;

pub fn queue_length(state: &State, copies: &[Copy]) -> usize {
    smallest(state, copies, |member, _| (member.pending(), member.taken))
}

/// Bytes in flight and incoming over the operator's weight (`st_compare_load`).
pub fn service_time(state: &State, copies: &[Copy], request: &Request) -> usize {
    best(state, copies, |one, other| {
        let (weight1, weight2) = (u64::from(one.traits.weight), u64::from(other.traits.weight));
        if weight1 == weight2 {
            return one.bytes.cmp(&other.bytes);
        }
        if one.bytes == other.bytes || weight1 == 0 || weight2 == 0 {
            return weight2.cmp(&weight1);
        }
        let incoming = u64::from(request.length);
        let time1 = (one.bytes + incoming) * weight2;
        let time2 = (other.bytes + incoming) * weight1;
        time1.cmp(&time2).then(weight2.cmp(&weight1))
    })
}

/// (1 + outstanding) x mean service time; stale paths are probed when idle and held to equal use when busy.
pub fn historical(state: &State, copies: &[Copy], threshold: u64, now: u64) -> usize {
    best(state, copies, |one, other| compare(one, other, threshold, now))
}

fn compare(one: &Member, other: &Member, threshold: u64, now: u64) -> Ordering {
    let (service1, service2) = (one.service, other.service);
    let (out1, out2) = (u64::from(one.pending()), u64::from(other.pending()));
    let apart = service1.max(service2) > threshold.saturating_mul(service1.min(service2));
    if !apart {
        return out1.cmp(&out2);
    }
    let probe = |out: u64, member: &Member| out == 0 && member.stale_after < now;
    if probe(out1, one) || probe(out2, other) || (out1 == 0 && out2 == 0) {
        let idle = |out: u64| u64::from(out == 0);
        return (idle(out2) * one.stale_after).cmp(&(idle(out1) * other.stale_after));
    }
    let other_better = if out1 == out2 {
        service1 > service2
    } else {
        u128::from(1 + out1) * u128::from(service1) > u128::from(1 + out2) * u128::from(service2)
    };
    if other_better {
        if other.stale_after < now {
            return out1.cmp(&out2);
        }
        return Ordering::Greater;
    }
    if one.stale_after < now {
        return out1.cmp(&out2);
    }
    Ordering::Less
}

/// The first, in the order of dm's list (longest unused first), that no other beats.
fn best(state: &State, copies: &[Copy], better: impl Fn(&Member, &Member) -> Ordering) -> usize {
    let of = |index: usize| &state.members[copies[index].member as usize];
    let mut list: Vec<usize> = (0..copies.len()).collect();
    list.sort_by_key(|&index| of(index).taken);
    let mut found = list[0];
    for &index in &list[1..] {
        if better(of(index), of(found)) == Ordering::Less {
            found = index;
        }
    }
    found
}

/// base^(n + 1) for bucket n in fixed point, 0 for the last (`hst_set_weights`).
pub fn weights(base: u64) -> [u64; 64] {
    let mut found = [0; 64];
    for (n, weight) in found.iter_mut().enumerate().take(63) {
        *weight = power(base, n as u32 + 1);
    }
    found
}

/// x^n in fixed point, each step rounded (`fixed_power`).
fn power(mut x: u64, mut n: u32) -> u64 {
    let mut result = ONE;
    while n > 0 {
        if n & 1 == 1 {
            result = (result * x + ONE / 2) >> SHIFT;
        }
        n >>= 1;
        x = (x * x + ONE / 2) >> SHIFT;
    }
    result
}

/// The end of an I/O: its service time without the wait behind the one before it (`path_service_time`).
pub fn finished(member: &mut Member, weights: &[u64; 64], sent: u64, now: u64, valid: u64) {
    let start = sent.max(member.last_finish);
    member.last_finish = now;
    let service = now.saturating_sub(start);
    let weight = weights[((service >> BUCKET) as usize).min(63)];
    let next = service.saturating_mul(ONE).min(u64::MAX >> SHIFT);
    member.service = (member.service * weight + next * (ONE - weight) + ONE / 2) >> SHIFT;
    member.stale_after = now + valid * (member.service >> SHIFT);
}
