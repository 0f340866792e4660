//! Any device by what was measured of it: mean latency at each depth (Little's law), and the shape of its latencies.
//!
//! While q are in flight one leaves every R(q)/q, so that the throughput at a constant depth is the measured one and,
//! by Little's law, the mean latency too. Alone, an I/O takes a latency drawn from the measured shape. Among several,
//! who leaves next is decided by draws from the shape at that depth: a narrow shape gives first in, first out, and a
//! wide one is returned with its quantiles within 15 %.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Job, Ns, NEVER};
use crate::rng::Rng;

/// Reads of at least this length take the sequential curve, where there is one.
pub const LARGE: u32 = 128 << 10;

/// So many I/Os after the last write, a read is beside writes, and the other way round.
const RECENT: u64 = 32;

/// One measured curve.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Ascending depths, and the mean latency in ns at each.
    pub depths: Vec<u32>,
    pub latency: Vec<f64>,
    /// At each depth the quantiles at even steps from 0 to 1 (at least 2), in units of the mean. Empty: always the mean.
    pub shapes: Vec<Vec<f64>>,
}

impl Curve {
    pub fn check(&self) -> Result<(), String> {
        let ascending = self.depths.windows(2).all(|pair| pair[0] < pair[1]);
        if self.depths.first().map_or(true, |&depth| depth == 0) || !ascending {
            return Err("a curve needs ascending depths from 1".into());
        }
        if self.latency.len() != self.depths.len() || self.latency.iter().any(|&time| !(1.0..1e15).contains(&time)) {
            return Err("a curve needs a latency of at least 1 ns for each depth".into());
        }
        let sound = |shape: &Vec<f64>| shape.len() >= 2 && shape.iter().all(|&part| (0.0..1e9).contains(&part));
        if !self.shapes.is_empty() && (self.shapes.len() != self.depths.len() || !self.shapes.iter().all(sound)) {
            return Err("a curve needs a shape of at least two quantiles for each depth, or none".into());
        }
        Ok(())
    }

    /// Mean latency at depth q: linear between measured depths, beyond them at the throughput of the last.
    fn at(&self, q: u32) -> f64 {
        let last = self.depths.len() - 1;
        if q <= self.depths[0] {
            return self.latency[0];
        }
        match self.depths.binary_search(&q) {
            Ok(index) => self.latency[index],
            Err(index) if index > last => self.latency[last] * f64::from(q) / f64::from(self.depths[last]),
            Err(index) => {
                let (low, high) = (f64::from(self.depths[index - 1]), f64::from(self.depths[index]));
                let part = (f64::from(q) - low) / (high - low);
                self.latency[index - 1] + part * (self.latency[index] - self.latency[index - 1])
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct EmpiricalModel {
    pub read: Curve,
    pub large: Option<Curve>,
    /// Writes; without a curve they are as reads.
    pub write: Option<Curve>,
    /// Small reads, and writes, beside the other kind; without curves as when alone.
    pub read_beside: Option<Curve>,
    pub write_beside: Option<Curve>,
    /// What a throttle lets through at once after a pause, in ns of the full rate; 0 without one.
    pub slice: Ns,
}

/// The I/Os of one kind, on a clock that goes on at the rate 1/R(q).
#[derive(Debug)]
struct Line {
    /// Alone, and beside the other kind.
    curves: [Curve; 2],
    /// R(q) for small q, so that no search is needed.
    tables: [Vec<f64>; 2],
    clock: f64,
    /// (clock at which it is due, order of arrival, tag); the bits of a positive float order as the float.
    active: BinaryHeap<Reverse<(u64, u64, u32)>>,
}

impl Line {
    fn new(curve: &Curve, beside: Option<&Curve>) -> Self {
        let curves = [curve.clone(), beside.unwrap_or(curve).clone()];
        let tables = [0, 1].map(|which| (0..=1024).map(|q| curves[which].at(q.max(1))).collect());
        Line { curves, tables, clock: 0.0, active: BinaryHeap::new() }
    }

    #[inline]
    fn latency(&self, (q, mixed): (u32, bool)) -> f64 {
        let which = usize::from(mixed);
        self.tables[which].get(q as usize).copied().unwrap_or_else(|| self.curves[which].at(q))
    }

    /// A latency at depth q in units of the mean.
    fn draw(&self, (q, mixed): (u32, bool), rng: &mut Rng) -> f64 {
        let curve = &self.curves[usize::from(mixed)];
        if curve.shapes.is_empty() {
            return 1.0;
        }
        let index = curve.depths.partition_point(|&depth| depth <= q).max(1) - 1;
        let shape = &curve.shapes[index];
        let place = rng.unit() * (shape.len() - 1) as f64;
        let (low, part) = (place as usize, place.fract());
        (shape[low] + part * (shape[low + 1] - shape[low])).max(1e-6)
    }

    fn due(&self) -> Option<f64> {
        self.active.peek().map(|Reverse((due, ..))| f64::from_bits(*due))
    }
}

#[derive(Debug)]
pub struct Empirical {
    lines: Vec<Line>,
    large: usize,
    write: usize,
    in_flight: u32,
    arrivals: u64,
    /// Numbers of the last read and of the last write to arrive.
    last: [u64; 2],
    at: Ns,
    finish: Ns,
    /// The line whose first leaves next, and how much of a whole interval is left until then.
    first: usize,
    left: f64,
}

impl Empirical {
    pub fn new(model: &EmpiricalModel) -> Self {
        let mut lines = vec![Line::new(&model.read, model.read_beside.as_ref())];
        let mut of = |curve: &Option<Curve>, beside: Option<&Curve>| {
            curve.as_ref().map_or(0, |curve| {
                lines.push(Line::new(curve, beside));
                lines.len() - 1
            })
        };
        let (large, write) = (of(&model.large, None), of(&model.write, model.write_beside.as_ref()));
        Empirical {
            lines,
            large,
            write,
            in_flight: 0,
            arrivals: 0,
            last: [0; 2],
            at: 0,
            finish: NEVER,
            first: 0,
            left: 1.0,
        }
    }

    pub fn submit(&mut self, job: Job, now: Ns, rng: &mut Rng) {
        self.advance(now);
        self.in_flight += 1;
        self.arrivals += 1;
        let kind = match job {
            Job { write: true, .. } => self.write,
            Job { length: LARGE.., .. } => self.large,
            _ => 0,
        };
        self.last[usize::from(job.write)] = self.arrivals;
        let draw = self.lines[kind].draw(self.load(), rng);
        if self.in_flight == 1 {
            self.left = draw;
        }
        let line = &mut self.lines[kind];
        line.active.push(Reverse(((line.clock + draw).to_bits(), self.arrivals, job.tag)));
        self.plan();
    }

    pub fn next(&self) -> Ns {
        self.finish
    }

    pub fn complete(&mut self, now: Ns, rng: &mut Rng) -> u32 {
        self.advance(now);
        self.in_flight -= 1;
        let line = &mut self.lines[self.first];
        let Reverse((_, _, tag)) = line.active.pop().expect("an event is due only while an I/O is active");
        if line.active.is_empty() {
            line.clock = 0.0; // keeps the clock's grain fine
        }
        self.left = 1.0;
        self.plan();
        if self.in_flight == 1 {
            self.left = self.lines[self.first].draw(self.load(), rng);
            self.plan();
        }
        tag
    }

    /// Whether both reads and writes are about: a device's caches know of a write also after it has ended.
    fn mixed(&self) -> bool {
        self.write > 0 && self.last.iter().all(|&last| last > 0 && self.arrivals - last < RECENT)
    }

    fn load(&self) -> (u32, bool) {
        (self.in_flight, self.mixed())
    }

    fn advance(&mut self, now: Ns) {
        let passed = (now - self.at) as f64;
        self.at = now;
        if self.in_flight == 0 {
            return;
        }
        let load = self.load();
        self.left -= passed * f64::from(self.in_flight) / self.lines[self.first].latency(load);
        for line in &mut self.lines {
            if !line.active.is_empty() {
                line.clock += passed / line.latency(load);
            }
        }
    }

    fn plan(&mut self) {
        let mut soonest = f64::INFINITY;
        let load = self.load();
        for (index, line) in self.lines.iter().enumerate() {
            if let Some(due) = line.due() {
                let until = (due - line.clock) * line.latency(load);
                if until < soonest {
                    soonest = until;
                    self.first = index;
                }
            }
        }
        self.finish = NEVER;
        if self.in_flight > 0 {
            let interval = self.lines[self.first].latency(load) / f64::from(self.in_flight);
            self.finish = self.at + (self.left.max(0.0) * interval).ceil() as Ns;
        }
    }
}
