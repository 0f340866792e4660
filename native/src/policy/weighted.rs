//! Choices that are partly chance: bcachefs, shortest expected delay with exploration, and none but chance.

use super::{smallest, Copy, State};

/// Uniform below `limit` from one of two halves of a random word.
fn below(word: u64, limit: u64) -> u64 {
    ((u128::from(word) * u128::from(limit)) >> 64) as u64
}

/// The next random word of a sequence that begins with `word` (SplitMix64).
fn next(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

pub fn random(copies: &[Copy], random: u64) -> usize {
    below(random, copies.len() as u64) as usize
}

/// Each candidate in turn replaces the best so far with the probability l_best / (l_best + l), l the mean latency
/// (`ptr_better`, fs/bcachefs/extents.c, 6.12; later versions square the latencies).
pub fn bcachefs(state: &State, copies: &[Copy], square: bool, random: u64) -> usize {
    let latency = |index: usize| {
        let mean = state.members[copies[index].member as usize].ewma.min(u64::from(u32::MAX));
        if square {
            mean * mean / 2
        } else {
            mean
        }
    };
    let mut word = random;
    let mut best = 0;
    for index in 1..copies.len() {
        let (ours, other) = (latency(index), latency(best));
        if below(word, ours + other) > ours {
            best = index;
        }
        word = next(word);
    }
    best
}

/// Mean latency x (in flight + 1), the classic shortest expected delay; now and then any member, to learn of it.
pub fn shortest_delay(state: &State, copies: &[Copy], explore_permille: u64, word: u64) -> usize {
    if below(word, 1000) < explore_permille {
        return random(copies, next(word));
    }
    smallest(state, copies, |member, _| u128::from(member.recent) * u128::from(member.pending() + 1))
}
