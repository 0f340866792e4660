//! A cache: what was read through it is quick the next time, if it was taken in.

use super::Ns;
use crate::rng::Rng;

const BLOCK: u64 = 4096;

/// Holds reads shorter than `bypass` for ever: it is larger than all that is read.
#[derive(Clone, Debug)]
pub struct Cache {
    /// What a read from the cache takes.
    pub hit: Ns,
    /// Reads of at least this length neither come from it nor fill it.
    pub bypass: u32,
    /// Part of the missed blocks that are taken in, in units of 2^-32.
    fill: u64,
    /// 1: in front of the array; else one in front of each member (bcache), so that copies are cached apart.
    copies: u64,
    bits: Vec<u64>,
    rng: Rng,
}

impl Cache {
    pub fn new(hit: Ns, bypass: u32, fill: f64, size: u64, copies: usize, seed: u64) -> Self {
        let bits = size.div_ceil(BLOCK) * copies as u64;
        Cache {
            hit,
            bypass,
            fill: (fill * 4_294_967_296.0) as u64,
            copies: copies as u64,
            bits: vec![0; bits.div_ceil(64) as usize],
            rng: Rng::new(seed, 4),
        }
    }

    pub fn clear(&mut self) {
        self.bits.fill(0);
    }

    /// Whether this copy of these bytes is in the cache; what was not may be from now on.
    #[inline]
    pub fn read(&mut self, offset: u64, length: u32, copy: usize) -> bool {
        if length >= self.bypass {
            return false;
        }
        let mut held = true;
        for block in offset / BLOCK..(offset + u64::from(length)).div_ceil(BLOCK) {
            let bit = block * self.copies + copy as u64 % self.copies;
            let (word, mask) = ((bit / 64) as usize, 1 << (bit % 64));
            if self.bits[word] & mask == 0 {
                held = false;
                if self.fill > u64::from(u32::MAX) || self.rng.word() >> 32 < self.fill {
                    self.bits[word] |= mask;
                }
            }
        }
        held
    }
}
