//! One world: an array, a policy, a closed loop of requests or an open load, perhaps a background, and what came of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use super::agenda::Agenda;
use super::cache::Cache;
use super::device::{Device, Model};
use super::layout::Layout;
use super::{Job, Ns, NEVER};
use crate::policy::{Copy, Policy, Request, State, Traits};
use crate::rng::Rng;
use crate::slots::Slots;
use crate::tally::Tally;
use crate::workload::{Arrivals, Stream, Workload};

/// Requests of an open load that are in flight at most; what comes beyond is counted and not made.
const MOST: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub struct MemberModel {
    pub traits: Traits,
    pub model: Model,
    pub capacity: u64,
}

/// A defragmentation in a loop: reads one after another, then a burst of large and small mirrored writes at once.
#[derive(Clone, Debug)]
pub struct Background {
    pub pid: u32,
    pub reads: u32,
    pub read_length: u32,
    pub large_writes: u32,
    pub large_length: u32,
    pub small_writes: u32,
    pub small_length: u32,
}

/// What one run did. Times are ns.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub read: Tally,
    pub write: Tally,
    pub seconds: f64,
    /// Arrivals and completions of every kind, also before the measured time: what the simulator had to do.
    pub events: u64,
    pub members: Vec<Share>,
    pub background_reads: u64,
    pub background_writes: u64,
    /// In flight on each member at even times.
    pub trace: Vec<Vec<u32>>,
    /// Requests that had come and had not ended in the end: of an open load that is too much, ever more.
    pub unfinished: u64,
}

/// What one member did for the workload and the background together.
#[derive(Clone, Debug, Default)]
pub struct Share {
    pub reads: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub hits: u64,
    pub wait: Ns,
    pub age: i64,
    pub ignored: i64,
    pub checkpoints: u32,
}

#[derive(Clone, Copy, Debug)]
enum Owner {
    /// Slot of the closed loop.
    Slot(u32),
    Reader,
    Writer,
}

#[derive(Clone, Copy, Debug)]
struct Io {
    copy: Copy,
    length: u32,
    write: bool,
    hit: bool,
    sent: Ns,
    owner: Owner,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    job: u32,
    started: Ns,
    parts: u32,
    write: bool,
}

pub struct World<'a> {
    members: &'a [MemberModel],
    layout: &'a Layout,
    policy: &'a Policy,
    cache: Option<&'a mut Cache>,
    state: State,
    devices: Vec<Device>,
    agenda: Agenda,
    hits: VecDeque<(Ns, u32)>,
    ios: Slots<Io>,
    copies: Vec<Copy>,
    choices: Rng,
    noise: Rng,
    shares: Vec<Share>,
    now: Ns,
    events: u64,
    background_reads: u64,
    background_writes: u64,
}

impl<'a> World<'a> {
    pub fn new(
        members: &'a [MemberModel],
        layout: &'a Layout,
        policy: &'a Policy,
        cache: Option<&'a mut Cache>,
        seed: u64,
    ) -> Self {
        let state = State::new(members.iter().map(|member| member.traits.clone()).collect(), policy);
        World {
            members,
            layout,
            policy,
            cache,
            state,
            devices: members.iter().map(|member| Device::new(&member.model)).collect(),
            agenda: Agenda::new(members.len() + 2),
            hits: VecDeque::new(),
            ios: Slots::default(),
            copies: Vec::new(),
            choices: Rng::new(seed, 1),
            noise: Rng::new(seed, 2),
            shares: vec![Share::default(); members.len()],
            now: 0,
            events: 0,
            background_reads: 0,
            background_writes: 0,
        }
    }

    /// One read of that member has taken so long before all begins.
    #[cfg(test)]
    pub fn spoil(&mut self, member: usize, wait: Ns) {
        self.state.members[member].ios = 1;
        self.state.members[member].wait = wait;
    }

    /// Runs for `ramp` and then `measured` ns, of which the I/Os that end count. `trace` is the time between two
    /// samples of what is in flight; 0 takes none.
    ///
    /// `stop` is looked at now and then; once it is set the run ends where it is.
    pub fn run(
        mut self,
        workload: &Workload,
        background: Option<&Background>,
        ramp: Ns,
        measured: Ns,
        trace: Ns,
        stop: &AtomicBool,
    ) -> Outcome {
        let mut streams: Vec<Stream> = (0..workload.jobs).map(|job| Stream::new(workload, job)).collect();
        let (cache_source, arrival_source) = (self.devices.len(), self.devices.len() + 1);
        let mut slots = Slots::default();
        let mut unfinished = 0;
        let mut arrivals = Arrivals::new(workload);
        if let Some(arrivals) = &mut arrivals {
            self.agenda.set(arrival_source, arrivals.wait());
        } else {
            unfinished = u64::from(workload.jobs * workload.iodepth);
            for job in (0..workload.jobs).flat_map(|job| (0..workload.iodepth).map(move |_| job)) {
                let index = slots.put(Slot { job, started: 0, parts: 0, write: false });
                self.start(index, &mut slots, &mut streams, workload);
            }
        }
        let mut load = background.map(|background| Load::new(background, self.layout.size, workload.seed));
        if let Some(load) = &mut load {
            self.go_on(load);
        }
        let (mut read, mut write) = (Tally::default(), Tally::default());
        let end = ramp + measured;
        let mut traced = Vec::new();
        let mut sample_at = if trace > 0 { ramp } else { NEVER };
        loop {
            let (time, source) = self.agenda.next();
            while sample_at < time.min(end) {
                traced.push(self.state.members.iter().map(|member| member.pending()).collect());
                sample_at += trace;
            }
            if time > end || (self.events % 4096 == 4095 && stop.load(Ordering::Relaxed)) {
                break;
            }
            self.now = time;
            self.events += 1;
            if let (true, Some(arrivals)) = (source == arrival_source, &mut arrivals) {
                self.agenda.set(source, time + arrivals.wait());
                unfinished += 1;
                if unfinished <= MOST {
                    let index = slots.put(Slot { job: arrivals.job(), started: 0, parts: 0, write: false });
                    self.start(index, &mut slots, &mut streams, workload);
                }
                continue;
            }
            let tag = if source == cache_source {
                let (_, tag) = self.hits.pop_front().expect("an event is due only while a hit is on its way");
                self.agenda.set(source, self.hits.front().map_or(NEVER, |hit| hit.0));
                tag
            } else {
                let tag = self.devices[source].complete(time, &mut self.noise);
                self.agenda.set(source, self.devices[source].next());
                tag
            };
            let io = self.ios[tag];
            self.ios.give_back(tag);
            self.account(&io, time >= ramp);
            match io.owner {
                Owner::Slot(index) => {
                    let slot = &mut slots[index];
                    slot.parts -= 1;
                    if slot.parts == 0 {
                        if time >= ramp {
                            let tally = if slot.write { &mut write } else { &mut read };
                            tally.add(time - slot.started, workload.length);
                        }
                        if arrivals.is_some() {
                            unfinished -= 1;
                            slots.give_back(index);
                        } else {
                            self.start(index, &mut slots, &mut streams, workload);
                        }
                    }
                }
                Owner::Reader | Owner::Writer => {
                    let load = load.as_mut().expect("only a background load owns such I/Os");
                    load.outstanding -= 1;
                    if load.outstanding == 0 {
                        self.go_on(load);
                    }
                }
            }
        }
        for (share, member) in self.shares.iter_mut().zip(&self.state.members) {
            share.age = i64::from(member.age);
            share.ignored = member.ignored;
            share.checkpoints = member.checkpoints;
        }
        Outcome {
            read,
            write,
            seconds: measured as f64 / super::SECOND as f64,
            events: self.events,
            members: self.shares,
            background_reads: self.background_reads,
            background_writes: self.background_writes,
            trace: traced,
            unfinished,
        }
    }

    #[inline]
    fn account(&mut self, io: &Io, counted: bool) {
        if io.write {
            self.state.write_done(io.copy, io.length);
        } else {
            self.state.read_done(io.copy, io.length, io.sent, self.now, true);
        }
        if counted {
            let share = &mut self.shares[io.copy.member as usize];
            if io.write {
                share.writes += 1;
            } else {
                share.reads += 1;
                share.read_bytes += u64::from(io.length);
                share.wait += self.now - io.sent;
                share.hits += u64::from(io.hit);
            }
        }
    }

    /// The slot's next request.
    #[inline]
    fn start(&mut self, index: u32, slots: &mut Slots<Slot>, streams: &mut [Stream], workload: &Workload) {
        let slot = &mut slots[index];
        let (offset, read) = streams[slot.job as usize].draw();
        slot.started = self.now;
        slot.write = !read;
        let pid = workload.pids[slot.job as usize];
        slot.parts = self.send(offset, workload.length, !read, pid, Owner::Slot(index), true);
    }

    /// Sends a request in as many parts as the layout cuts it into, a write to every copy; returns the I/Os sent.
    fn send(&mut self, mut offset: u64, length: u32, write: bool, pid: u32, owner: Owner, cached: bool) -> u32 {
        let end = offset + u64::from(length);
        let mut sent = 0;
        while offset < end {
            let mut copies = std::mem::take(&mut self.copies);
            let part = self.layout.locate(offset, (end - offset) as u32, &mut copies);
            if write {
                for copy in &copies {
                    self.state.write_sent(*copy, part);
                    self.issue(Io { copy: *copy, length: part, write, hit: false, sent: self.now, owner });
                }
                sent += copies.len() as u32;
            } else {
                let request = Request { offset, length: part, pid };
                let random = if self.policy.is_random() { self.choices.word() } else { 0 };
                let chosen = self.policy.choose(&self.state, &copies, &request, self.now, random);
                self.state.read_sent(&copies, chosen, &request);
                let hit = cached && self.cache.as_mut().is_some_and(|cache| cache.read(offset, part, chosen));
                self.issue(Io { copy: copies[chosen], length: part, write, hit, sent: self.now, owner });
                sent += 1;
            }
            self.copies = copies;
            offset += u64::from(part);
        }
        sent
    }

    #[inline]
    fn issue(&mut self, io: Io) {
        let tag = self.ios.put(io);
        if io.hit {
            let finish = self.now + self.cache.as_ref().map_or(1, |cache| cache.hit);
            if self.hits.is_empty() {
                self.agenda.set(self.members.len(), finish);
            }
            self.hits.push_back((finish, tag));
            return;
        }
        let member = io.copy.member as usize;
        let job = Job { tag, address: io.copy.address, length: io.length, write: io.write };
        self.devices[member].submit(job, self.now, &mut self.noise);
        self.agenda.set(member, self.devices[member].next());
    }

    /// The background load's next step, after all of its last one has ended.
    fn go_on(&mut self, load: &mut Load) {
        let plan = load.plan;
        if load.reads_left > 0 {
            load.reads_left -= 1;
            let offset = load.reading;
            load.reading = (load.reading + u64::from(plan.read_length)) % load.size;
            self.background_reads += 1;
            load.outstanding = self.send(offset, plan.read_length, false, plan.pid, Owner::Reader, false);
            return;
        }
        load.reads_left = plan.reads;
        let mut sent = 0;
        for _ in 0..plan.large_writes {
            sent += self.send(load.writing, plan.large_length, true, plan.pid, Owner::Writer, false);
            load.writing = (load.writing + u64::from(plan.large_length)) % load.size;
        }
        for _ in 0..plan.small_writes {
            let block = load.rng.below(load.size / u64::from(plan.small_length));
            let offset = block * u64::from(plan.small_length);
            sent += self.send(offset, plan.small_length, true, plan.pid, Owner::Writer, false);
        }
        self.background_writes += u64::from(sent);
        load.outstanding = sent;
        if sent == 0 {
            load.outstanding = self.send(load.reading, plan.read_length, false, plan.pid, Owner::Reader, false);
        }
    }
}

/// How far the background load has come.
struct Load<'a> {
    plan: &'a Background,
    size: u64,
    rng: Rng,
    reading: u64,
    writing: u64,
    reads_left: u32,
    outstanding: u32,
}

impl<'a> Load<'a> {
    fn new(plan: &'a Background, size: u64, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 3);
        let unit = u64::from(plan.read_length.max(plan.large_length)).next_power_of_two().max(1 << 20);
        let mut place = || rng.below(size / unit) * unit;
        let (reading, writing) = (place(), place());
        Load { plan, size, rng, reading, writing, reads_left: plan.reads, outstanding: 0 }
    }
}
