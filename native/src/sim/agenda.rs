//! Which source has the next event: a tournament over their times; of equal times the source of the lowest number.

use super::{Ns, NEVER};

#[derive(Debug)]
pub struct Agenda {
    /// Times of all sources, padded to a power of two.
    times: Vec<Ns>,
    /// `winners[i]` of the inner node i; its children are nodes 2i and 2i + 1, leaves begin at `times.len()`.
    winners: Vec<u32>,
}

impl Agenda {
    pub fn new(sources: usize) -> Self {
        let leaves = sources.max(2).next_power_of_two();
        let mut agenda = Agenda { times: vec![NEVER; leaves], winners: vec![0; leaves] };
        for leaf in (0..leaves).rev() {
            agenda.set(leaf, NEVER);
        }
        agenda
    }

    #[inline]
    pub fn set(&mut self, source: usize, time: Ns) {
        let leaves = self.times.len();
        self.times[source] = time;
        let mut node = (leaves + source) >> 1;
        while node >= 1 {
            let (left, right) = if 2 * node >= leaves {
                (2 * node - leaves, 2 * node + 1 - leaves)
            } else {
                (self.winners[2 * node] as usize, self.winners[2 * node + 1] as usize)
            };
            self.winners[node] = if self.times[right] < self.times[left] { right } else { left } as u32;
            node >>= 1;
        }
    }

    #[inline]
    pub fn next(&self) -> (Ns, usize) {
        let source = self.winners[1] as usize;
        (self.times[source], source)
    }
}
