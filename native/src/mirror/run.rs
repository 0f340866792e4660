//! The closed loop on real members, and what it does when a member errs, stalls or vanishes.

use super::members::open;
use super::report::{Ended, MemberReport, Report, Spec};
use super::ring::{Buffers, Ring};
use crate::policy::{Copy, Request, State};
use crate::rng::Rng;
use crate::slots::Slots;
use crate::tally::Tally;
use crate::workload::Stream;

/// Errors of a member that are passed over one by one before it is used no more.
const ERRORS: u64 = 16;
/// ns between two looks at the clock for stalls and at the caller's wish to stop.
const LOOK: u64 = 50_000_000;

#[derive(Clone, Copy, Debug)]
struct Slot {
    job: u32,
    started: u64,
    offset: u64,
    buffer: u32,
    parts: u32,
    write: bool,
    /// Members that have failed this very read, as bits.
    tried: u64,
}

#[derive(Clone, Copy, Debug)]
struct Io {
    slot: u32,
    member: u16,
    buffer: u32,
    write: bool,
    sent: u64,
    flying: bool,
    /// Given up: the slot goes on without it, and its buffer stays the kernel's until it comes back.
    abandoned: bool,
    offset: u64,
}

/// Runs until the time is over; `go_on` is asked some times a second.
pub fn run(spec: &Spec, go_on: impl FnMut() -> bool) -> Result<Report, String> {
    spec.workload.check()?;
    if spec.workload.rate > 0.0 {
        return Err("the mirror keeps a closed loop: an open load can only be simulated".into());
    }
    if spec.members.is_empty() || spec.members.len() > 64 {
        return Err(format!("a mirror of {} members; 1 to 64 are possible", spec.members.len()));
    }
    let writing = spec.workload.read_percent < 100;
    let mut files = Vec::new();
    let mut reports = Vec::new();
    for member in &spec.members {
        let (file, direct) = open(&member.path, spec.direct, writing)?;
        files.push(file);
        reports.push(MemberReport { path: member.path.clone(), direct, ..MemberReport::default() });
    }
    let slots = (spec.workload.jobs * spec.workload.iodepth) as usize;
    let mut buffers = Buffers::new(2 * slots, spec.workload.length as usize)?;
    if writing {
        let mut noise = Rng::new(spec.workload.seed, 5);
        buffers.fill(|| noise.word());
    }
    let most = if writing { slots * spec.members.len() } else { slots };
    let ring = Ring::new(most.next_power_of_two().clamp(8, 4096) as u32, &files, &mut buffers)?;
    let mut mirror = Dispatcher::new(spec, ring, buffers, reports);
    let ended = mirror.run(go_on);
    mirror.finish(ended?)
}

fn clock() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes into `time` and nothing else.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

struct Dispatcher<'a> {
    spec: &'a Spec,
    ring: Ring,
    buffers: Buffers,
    state: State,
    random: Rng,
    streams: Vec<Stream>,
    slots: Vec<Slot>,
    ios: Slots<Io>,
    spare: Vec<u32>,
    reports: Vec<MemberReport>,
    stalled: Vec<bool>,
    /// Members that may be chosen, in their order.
    usable: Vec<u16>,
    candidates: Vec<Copy>,
    outstanding: usize,
    starting: bool,
    ended: Option<Ended>,
    /// Begin of the measured time, and its end.
    from: u64,
    until: u64,
    read: Tally,
    write: Tally,
    retried: u64,
    unreadable: u64,
    per_second: Vec<(u64, u64)>,
    trace: Vec<Vec<u32>>,
}

impl<'a> Dispatcher<'a> {
    fn new(spec: &'a Spec, ring: Ring, buffers: Buffers, reports: Vec<MemberReport>) -> Self {
        let work = &spec.workload;
        let count = work.jobs * work.iodepth;
        let slot = |index: u32| Slot {
            job: index / work.iodepth,
            started: 0,
            offset: u64::MAX,
            buffer: index,
            parts: 0,
            write: false,
            tried: 0,
        };
        Dispatcher {
            spec,
            ring,
            buffers,
            state: State::new(spec.members.iter().map(|member| member.traits.clone()).collect(), &spec.policy),
            // Not from the seed: the same offsets read again must not meet the same chances.
            random: Rng::new(clock(), 6),
            streams: (0..work.jobs).map(|job| Stream::new(work, job)).collect(),
            slots: (0..count).map(slot).collect(),
            ios: Slots::default(),
            spare: (count..2 * count).collect(),
            stalled: vec![false; reports.len()],
            usable: (0..reports.len() as u16).collect(),
            reports,
            candidates: Vec::new(),
            outstanding: 0,
            starting: true,
            ended: None,
            from: 0,
            until: 0,
            read: Tally::default(),
            write: Tally::default(),
            retried: 0,
            unreadable: 0,
            per_second: vec![(0, 0); (spec.measured / 1_000_000_000) as usize],
            trace: Vec::new(),
        }
    }

    fn run(&mut self, mut go_on: impl FnMut() -> bool) -> Result<Ended, String> {
        let begun = clock();
        self.from = begun + self.spec.ramp;
        self.until = self.from + self.spec.measured;
        let mut look = begun + LOOK;
        let mut sample = if self.spec.trace > 0 { self.from } else { u64::MAX };
        for index in 0..self.slots.len() {
            self.start(index as u32, clock());
        }
        let mut now = clock();
        loop {
            let deadline = look.min(sample).min(if self.starting { self.until } else { u64::MAX });
            self.ring.enter(deadline.saturating_sub(now).max(1))?;
            while let Some((tag, result)) = self.ring.reap() {
                now = clock();
                self.done(tag as u32, result, now);
            }
            now = clock();
            if now >= sample && self.starting {
                self.trace.push(self.state.members.iter().map(|member| member.pending()).collect());
                sample += self.spec.trace * ((now - sample) / self.spec.trace + 1);
            }
            if now >= look {
                look = now + LOOK;
                if self.starting && !go_on() {
                    self.ended = Some(Ended::Stopped);
                }
                self.find_stalls(now);
            }
            if self.starting && (now >= self.until || self.ended.is_some()) {
                self.starting = false;
                self.until = self.until.min(now);
                sample = u64::MAX;
            }
            // What does not come back within the time for a stall is left behind.
            if !self.starting && (self.outstanding == 0 || now > self.until + self.spec.stall) {
                return Ok(self.ended.unwrap_or(Ended::Finished));
            }
        }
    }

    /// The slot's next request.
    fn start(&mut self, index: u32, now: u64) {
        if !self.starting || self.ended.is_some() {
            return;
        }
        let (mut offset, read) = self.streams[self.slots[index as usize].job as usize].draw();
        if !read {
            // Two writes of one block at once could end in a different order on different members.
            while self.slots.iter().any(|slot| slot.write && slot.parts > 0 && slot.offset == offset) {
                offset = self.streams[self.slots[index as usize].job as usize].draw().0;
            }
        }
        let slot = &mut self.slots[index as usize];
        slot.started = now;
        slot.offset = offset;
        slot.write = !read;
        slot.tried = 0;
        if read {
            self.send_read(index, now);
            return;
        }
        slot.parts = self.usable.len() as u32;
        for at in 0..self.usable.len() {
            let member = self.usable[at];
            self.state.write_sent(Copy { member, address: offset }, self.spec.workload.length);
            self.issue(index, member, true, now);
        }
    }

    /// Sends the slot's read to a member that has not failed it yet.
    #[inline]
    fn send_read(&mut self, index: u32, now: u64) {
        let slot = &mut self.slots[index as usize];
        let (offset, tried) = (slot.offset, slot.tried);
        self.candidates.clear();
        let open = self.usable.iter().filter(|&&member| tried >> member & 1 == 0);
        self.candidates.extend(open.map(|&member| Copy { member, address: offset }));
        if self.candidates.is_empty() {
            slot.parts = 0;
            self.unreadable += 1;
            if self.usable.is_empty() {
                self.ended = Some(Ended::NoMember);
            } else if self.unreadable > ERRORS {
                self.ended = Some(Ended::Unreadable);
            } else {
                self.start(index, now);
            }
            return;
        }
        slot.parts = 1;
        let pid = self.spec.workload.pids[slot.job as usize];
        let request = Request { offset, length: self.spec.workload.length, pid };
        let random = if self.spec.policy.is_random() { self.random.word() } else { 0 };
        let chosen = self.spec.policy.choose(&self.state, &self.candidates, &request, now, random);
        self.state.read_sent(&self.candidates, chosen, &request);
        self.issue(index, self.candidates[chosen].member, false, now);
    }

    #[inline]
    fn issue(&mut self, index: u32, member: u16, write: bool, now: u64) {
        let Slot { buffer, offset, .. } = self.slots[index as usize];
        let io = Io { slot: index, member, buffer, write, sent: now, flying: true, abandoned: false, offset };
        let tag = self.ios.put(io);
        self.outstanding += 1;
        let place = (member, offset, self.spec.workload.length);
        self.ring.push(&self.buffers, buffer, place, write, u64::from(tag));
    }

    #[inline]
    fn done(&mut self, tag: u32, result: i32, now: u64) {
        let io = self.ios[tag];
        let length = self.spec.workload.length;
        let good = result == length as i32;
        self.ios[tag].flying = false;
        self.ios.give_back(tag);
        self.outstanding -= 1;
        let copy = Copy { member: io.member, address: io.offset };
        if io.write {
            self.state.write_done(copy, length);
        } else {
            self.state.read_done(copy, length, io.sent, now, good);
        }
        if good && now >= self.from && now <= self.until {
            let report = &mut self.reports[io.member as usize];
            if io.write {
                report.writes += 1;
            } else {
                report.reads += 1;
                report.read_bytes += u64::from(length);
                report.wait += now - io.sent;
            }
        }
        if !good {
            self.failed(io.member, result, io.write);
        }
        if io.abandoned {
            if !io.write {
                self.spare.push(io.buffer);
            }
            self.back(io.member, good);
            return;
        }
        if !good && !io.write {
            self.slots[io.slot as usize].tried |= 1 << io.member;
            self.retried += 1;
            if self.starting {
                self.send_read(io.slot, now);
            }
            return;
        }
        self.part_done(io.slot, now);
    }

    /// One I/O of the slot's request has ended, or is waited for no more.
    #[inline]
    fn part_done(&mut self, index: u32, now: u64) {
        let slot = &mut self.slots[index as usize];
        slot.parts -= 1;
        if slot.parts > 0 {
            return;
        }
        if now >= self.from && now <= self.until {
            let tally = if slot.write { &mut self.write } else { &mut self.read };
            tally.add(now - slot.started, self.spec.workload.length);
            if let Some(second) = self.per_second.get_mut(((now - self.from) / 1_000_000_000) as usize) {
                *(if slot.write { &mut second.1 } else { &mut second.0 }) += 1;
            }
        }
        self.start(index, now);
    }

    /// An I/O has failed on that member: how often that is borne. A failed write leaves it without the bytes.
    fn failed(&mut self, member: u16, result: i32, write: bool) {
        let report = &mut self.reports[member as usize];
        report.errors += 1;
        report.first_error.get_or_insert(-result.min(0));
        let gone = matches!(-result, libc::ENODEV | libc::ENXIO | libc::EBADF | 0);
        if gone || write || report.errors > ERRORS {
            report.dropped = true;
            self.usable.retain(|&other| other != member);
            if self.usable.is_empty() {
                self.ended = Some(Ended::NoMember);
            }
        }
    }

    /// Members with something outstanding for too long are passed over from now on, and what they owe is read again.
    fn find_stalls(&mut self, now: u64) {
        for tag in 0..self.ios.len() {
            let io = self.ios[tag];
            if !io.flying || io.abandoned || now.saturating_sub(io.sent) <= self.spec.stall {
                continue;
            }
            let member = io.member as usize;
            if !self.stalled[member] {
                self.stalled[member] = true;
                self.reports[member].stalls += 1;
                self.usable.retain(|&other| other != io.member);
            }
            self.reports[member].dropped |= io.write; // its bytes are unknown from here on
            if self.usable.is_empty() {
                self.ended.get_or_insert(Ended::NoMember);
            }
            let Some(buffer) = self.spare.pop() else {
                self.ended.get_or_insert(Ended::Stuck);
                return;
            };
            self.ios[tag].abandoned = true;
            let slot = &mut self.slots[io.slot as usize];
            slot.buffer = buffer;
            if io.write {
                self.part_done(io.slot, now);
            } else if self.starting && self.ended.is_none() {
                slot.tried |= 1 << member;
                self.retried += 1;
                self.send_read(io.slot, now);
            }
        }
    }

    /// Something given up has come back from a stalled member: it answers again.
    fn back(&mut self, member: u16, good: bool) {
        let at = member as usize;
        let waiting = self.ios.iter().any(|io| io.flying && io.abandoned && io.member == member);
        if good && self.stalled[at] && !waiting && !self.reports[at].dropped {
            self.stalled[at] = false;
            self.usable.push(member);
            self.usable.sort_unstable();
        }
    }

    fn finish(mut self, ended: Ended) -> Result<Report, String> {
        for io in self.ios.iter().filter(|io| io.flying) {
            self.reports[io.member as usize].lost += 1;
        }
        for (report, member) in self.reports.iter_mut().zip(&self.state.members) {
            report.age = i64::from(member.age);
            report.ignored = member.ignored;
            report.checkpoints = member.checkpoints;
        }
        let registered = self.ring.registered_files && self.buffers.registered;
        if self.outstanding == 0 {
            self.ring.release();
            drop(self.ring);
            self.buffers.free();
        } // else the kernel may still write to them: they stay until the process ends
        let measured = self.until.saturating_sub(self.from);
        self.per_second.truncate((measured / 1_000_000_000) as usize);
        Ok(Report {
            read: self.read,
            write: self.write,
            measured,
            ended,
            members: self.reports,
            retried: self.retried,
            unreadable: self.unreadable,
            per_second: self.per_second,
            trace: self.trace,
            registered,
        })
    }
}
