//! A disk: seek, rotation, transfer; shortest positioning time first among what it has queued (Worthington 1994).

use std::collections::VecDeque;

use super::{Job, Ns, NEVER, SECOND};

/// I/Os that a disk orders by itself (NCQ).
const QUEUE: usize = 32;

#[derive(Clone, Debug)]
pub struct HddModel {
    /// ns of the shortest and of the mean seek; between two random places the mean is settle + 8/15 of the span.
    pub settle: Ns,
    pub mean_seek: Ns,
    pub revolution: Ns,
    pub bytes_per_second: u64,
    pub capacity: u64,
    /// An I/O that begins at most this far behind the head's last is reached by reading on.
    pub skip: u64,
    /// An I/O that has waited this long goes first.
    pub starvation: Ns,
}

impl HddModel {
    /// A disk by its speed: 7200 rpm seeks 8.5 ms, 5400 rpm 12 ms, 4200 rpm 14 ms on average.
    pub fn of_rpm(rpm: u64, mib_per_second: u64, starvation: Ns) -> Self {
        HddModel {
            settle: 1_500_000,
            mean_seek: match rpm {
                7200.. => 8_500_000,
                5400.. => 12_000_000,
                _ => 14_000_000,
            },
            revolution: 60 * SECOND / rpm,
            bytes_per_second: mib_per_second << 20,
            capacity: 1 << 40,
            skip: 2 << 20,
            starvation,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    job: Job,
    arrived: Ns,
}

#[derive(Debug)]
pub struct Hdd {
    /// ns per square root of the part of the whole span.
    span: f32,
    settle: f32,
    revolution: Ns,
    /// 2^64 / revolution: a time times this, modulo 2^64, is the angle.
    turn: u64,
    turns_per_byte: f64,
    ns_per_byte: f64,
    per_capacity: f32,
    skip: u64,
    starvation: Ns,
    /// Of the queued, beside each other so that the search runs over packed numbers.
    place: [f32; QUEUE],
    angle: [u32; QUEUE],
    queued: [Queued; QUEUE],
    count: usize,
    waiting: VecDeque<Queued>,
    active: Option<u32>,
    finish: Ns,
    head: u64,
}

impl Hdd {
    pub fn new(model: &HddModel) -> Self {
        let none = Queued { job: Job { tag: 0, address: 0, length: 0, write: false }, arrived: 0 };
        let track = model.bytes_per_second as f64 * model.revolution as f64 / SECOND as f64;
        Hdd {
            span: (model.mean_seek.saturating_sub(model.settle)) as f32 * (15.0 / 8.0),
            settle: model.settle as f32,
            revolution: model.revolution,
            turn: u64::MAX / model.revolution,
            turns_per_byte: 1.0 / track,
            ns_per_byte: SECOND as f64 / model.bytes_per_second as f64,
            per_capacity: 1.0 / model.capacity as f32,
            skip: model.skip,
            starvation: model.starvation,
            place: [0.0; QUEUE],
            angle: [0; QUEUE],
            queued: [none; QUEUE],
            count: 0,
            waiting: VecDeque::new(),
            active: None,
            finish: NEVER,
            head: 0,
        }
    }

    #[inline]
    pub fn submit(&mut self, job: Job, now: Ns) {
        let queued = Queued { job, arrived: now };
        if self.count + usize::from(self.active.is_some()) >= QUEUE {
            self.waiting.push_back(queued);
            return;
        }
        self.queue(queued);
        if self.active.is_none() {
            self.begin(now);
        }
    }

    #[inline]
    pub fn next(&self) -> Ns {
        self.finish
    }

    #[inline]
    pub fn complete(&mut self, now: Ns) -> u32 {
        let tag = self.active.take().expect("an event is due only while an I/O is active");
        if let Some(queued) = self.waiting.pop_front() {
            self.queue(queued);
        }
        if self.count > 0 {
            self.begin(now);
        } else {
            self.finish = NEVER;
        }
        tag
    }

    #[inline]
    fn queue(&mut self, queued: Queued) {
        let address = queued.job.address;
        let turns = address as f64 * self.turns_per_byte;
        self.place[self.count] = address as f32 * self.per_capacity;
        self.angle[self.count] = ((turns - turns.floor()) * 4_294_967_296.0) as u64 as u32;
        self.queued[self.count] = queued;
        self.count += 1;
    }

    /// Starts the I/O that is positioned soonest, or one that has waited too long.
    #[inline]
    fn begin(&mut self, now: Ns) {
        let mut best = 0;
        let mut least = Ns::MAX;
        let mut oldest = (Ns::MAX, 0);
        let here = self.head as f32 * self.per_capacity;
        for index in 0..self.count {
            let queued = &self.queued[index];
            if queued.arrived < oldest.0 {
                oldest = (queued.arrived, index);
            }
            let ahead = queued.job.address.wrapping_sub(self.head);
            let time = if ahead <= self.skip {
                (ahead as f64 * self.ns_per_byte) as Ns
            } else {
                self.position(now, here, index)
            };
            if time < least {
                best = index;
                least = time;
            }
        }
        if now - oldest.0 > self.starvation && oldest.1 != best {
            best = oldest.1;
            least = self.position(now, here, best);
        }
        let job = self.queued[best].job;
        self.count -= 1;
        self.place[best] = self.place[self.count];
        self.angle[best] = self.angle[self.count];
        self.queued[best] = self.queued[self.count];
        self.active = Some(job.tag);
        self.head = job.address + u64::from(job.length);
        self.finish = now + least + ((f64::from(job.length) * self.ns_per_byte) as Ns).max(1);
    }

    /// Seek and the rotation after it, ns.
    #[inline]
    fn position(&self, now: Ns, here: f32, index: usize) -> Ns {
        let seek = (self.settle + self.span * (self.place[index] - here).abs().sqrt()) as u32;
        let angle = ((now + u64::from(seek)).wrapping_mul(self.turn) >> 32) as u32;
        let rotation = (u64::from(self.angle[index].wrapping_sub(angle)) * self.revolution) >> 32;
        u64::from(seek) + rotation
    }
}
