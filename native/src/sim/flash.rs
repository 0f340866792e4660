//! Flash: some channels, a fixed time and a transfer each, a part that varies, and now and then a stall.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{Job, Ns, NEVER, SECOND};
use crate::rng::Rng;

#[derive(Clone, Debug)]
pub struct FlashModel {
    pub channels: usize,
    pub read: Ns,
    pub write: Ns,
    pub bytes_per_second: u64,
    /// Part of the reads, in units of 2^-32, that take `stall` longer.
    pub stalls: u32,
    pub stall: Ns,
    /// Mean of a part of each read's time that varies (exponential); 0: all take the same.
    pub spread: Ns,
}

#[derive(Debug)]
pub struct Flash {
    model: FlashModel,
    ns_per_byte: f64,
    busy: BinaryHeap<Reverse<(Ns, u64, u32)>>,
    waiting: VecDeque<Job>,
    started: u64,
}

impl Flash {
    pub fn new(model: &FlashModel) -> Self {
        Flash {
            model: model.clone(),
            ns_per_byte: model.channels as f64 * SECOND as f64 / model.bytes_per_second as f64,
            busy: BinaryHeap::with_capacity(model.channels),
            waiting: VecDeque::new(),
            started: 0,
        }
    }

    #[inline]
    pub fn submit(&mut self, job: Job, now: Ns, rng: &mut Rng) {
        if self.busy.len() < self.model.channels {
            self.begin(job, now, rng);
        } else {
            self.waiting.push_back(job);
        }
    }

    #[inline]
    pub fn next(&self) -> Ns {
        self.busy.peek().map_or(NEVER, |Reverse((time, ..))| *time)
    }

    #[inline]
    pub fn complete(&mut self, now: Ns, rng: &mut Rng) -> u32 {
        let Reverse((_, _, tag)) = self.busy.pop().expect("an event is due only while an I/O is active");
        if let Some(job) = self.waiting.pop_front() {
            self.begin(job, now, rng);
        }
        tag
    }

    #[inline]
    fn begin(&mut self, job: Job, now: Ns, rng: &mut Rng) {
        let mut time = if job.write { self.model.write } else { self.model.read };
        time += (f64::from(job.length) * self.ns_per_byte) as Ns;
        if self.model.stalls > 0 && !job.write && (rng.word() >> 32) < u64::from(self.model.stalls) {
            time += self.model.stall;
        }
        if self.model.spread > 0 && !job.write {
            time += rng.exponential(self.model.spread as f64);
        }
        self.started += 1;
        self.busy.push(Reverse((now + time.max(1), self.started, job.tag)));
    }
}
