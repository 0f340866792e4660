//! A device that is held to a rate in slices, as the kernel's blk-throttle holds one (tg_within_iops_limit): after a pause
//! a whole slice goes through at once, and while there is more to do, another whole one at the end of each.
//!
//! Reads and writes have limits of their own. Each I/O costs its share of the slice, by the rate measured at the
//! greatest depth, and takes what the median took at depth 1, when nothing is in its way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::empirical::{Curve, EmpiricalModel, LARGE};
use super::{Job, Ns, NEVER};

#[derive(Clone, Copy, Debug, Default)]
struct Gate {
    begin: Ns,
    end: Ns,
    /// What the slice has left, ns of the full rate.
    left: f64,
}

impl Gate {
    /// When an I/O that comes now is let through.
    fn pass(&mut self, cost: f64, now: Ns, slice: Ns) -> Ns {
        if now >= self.end {
            *self = Gate { begin: now, end: now + slice, left: slice as f64 };
        }
        while self.left < cost {
            self.left += slice as f64;
            self.begin = self.end;
            self.end += slice;
        }
        self.left -= cost;
        self.begin.max(now)
    }
}

/// Of one kind of I/O: its share of the full rate, and how long it takes, ns.
#[derive(Clone, Copy, Debug)]
struct Kind {
    cost: f64,
    time: Ns,
}

impl Kind {
    fn of(curve: &Curve) -> Self {
        let last = curve.depths.len() - 1;
        let median = curve.shapes.first().map_or(1.0, |shape| shape[shape.len() / 2]);
        let time = (median * curve.latency[0]).max(1.0) as Ns;
        Kind { cost: curve.latency[last] / f64::from(curve.depths[last]), time }
    }
}

#[derive(Debug)]
pub struct Throttled {
    slice: Ns,
    gates: [Gate; 2],
    small: Kind,
    large: Kind,
    write: Kind,
    arrivals: u64,
    /// (when it ends, order of arrival, tag)
    active: BinaryHeap<Reverse<(Ns, u64, u32)>>,
}

impl Throttled {
    pub fn new(model: &EmpiricalModel) -> Self {
        let small = Kind::of(&model.read);
        let or_small = |curve: &Option<Curve>| curve.as_ref().map_or(small, Kind::of);
        Throttled {
            slice: model.slice,
            gates: [Gate::default(); 2],
            small,
            large: or_small(&model.large),
            write: or_small(&model.write),
            arrivals: 0,
            active: BinaryHeap::new(),
        }
    }

    pub fn submit(&mut self, job: Job, now: Ns) {
        let kind = match job {
            Job { write: true, .. } => self.write,
            Job { length: LARGE.., .. } => self.large,
            _ => self.small,
        };
        let end = self.gates[usize::from(job.write)].pass(kind.cost, now, self.slice) + kind.time;
        self.arrivals += 1;
        self.active.push(Reverse((end, self.arrivals, job.tag)));
    }

    pub fn next(&self) -> Ns {
        self.active.peek().map_or(NEVER, |Reverse((end, ..))| *end)
    }

    pub fn complete(&mut self) -> u32 {
        let Reverse((_, _, tag)) = self.active.pop().expect("an event is due only while an I/O is active");
        tag
    }
}
