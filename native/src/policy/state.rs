//! What a read policy may look at: section by section the counters that kernels keep, and how they are kept.
//!
//! No policy changes anything here. Whoever drives the policies (simulator or mirror) tells the state what was sent and
//! what came back, with the time of both.

use super::Policy;

/// A sector of 4 KiB, as btrfs counts its reads.
pub const SECTOR: u64 = 4096;

/// Where one copy of the wanted bytes lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    pub member: u16,
    /// Byte address on that member.
    pub address: u64,
}

/// A read that needs a member. `pid` is the submitter's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Byte offset in the array.
    pub offset: u64,
    pub length: u32,
    pub pid: u32,
}

/// What never changes about a member.
#[derive(Clone, Debug)]
pub struct Traits {
    pub devid: u64,
    pub rotational: bool,
    /// Relative throughput that an operator gave it (dm service-time), 0 to 100.
    pub weight: u32,
    /// The largest I/O the device likes best, bytes (md raid1); 0 when it says none.
    pub optimal_io: u32,
}

impl Traits {
    pub fn new(devid: u64, rotational: bool) -> Self {
        Traits { devid, rotational, weight: 1, optimal_io: 0 }
    }
}

/// One member as policies see it. Times are ns, addresses and sizes bytes.
#[derive(Clone, Debug)]
pub struct Member {
    pub traits: Traits,
    /// In flight now.
    pub reads: u32,
    pub writes: u32,
    pub bytes: u64,
    /// Where the last I/O sent to it ends (ZFS `vq_last_offset`).
    pub last_end: u64,
    /// The same of reads alone (md `next_seq_sect`).
    pub next_read: u64,
    /// Where the current run of sequential reads began (md `seq_start`).
    pub run_start: u64,
    /// Where the last finished I/O ended (md `head_position`).
    pub head: u64,
    /// Finished reads and the time they took, since the beginning.
    pub ios: u64,
    pub wait: u64,
    /// The same at the last checkpoint, and how many checkpoints there were.
    pub base_ios: u64,
    pub base_wait: u64,
    pub checkpoints: u32,
    /// Selections in which it was a candidate and not taken; below 0 while it is being probed again.
    pub age: i32,
    /// Up when candidate, down when taken (kakra's `ignored`).
    pub ignored: i64,
    /// Mean read latency, weight 1/32, as bcachefs keeps it.
    pub ewma: u64,
    /// Mean read latency with the weight that the policy asks for (SED), or over its window (queue-adaptive).
    pub recent: u64,
    pub recent_at: u64,
    /// dm historical-service-time: fixed point with 10 bits, and its times.
    pub service: u64,
    pub stale_after: u64,
    pub last_finish: u64,
    /// Number of the decision that took it last: dm moves that path to the end of its list.
    pub taken: u64,
    pub vetoed: u64,
}

impl Member {
    fn new(traits: Traits) -> Self {
        Member {
            traits,
            reads: 0,
            writes: 0,
            bytes: 0,
            last_end: u64::MAX,
            next_read: u64::MAX,
            run_start: u64::MAX,
            head: 0,
            ios: 0,
            wait: 0,
            base_ios: 0,
            base_wait: 0,
            checkpoints: 0,
            age: 0,
            ignored: 0,
            ewma: 0,
            recent: 0,
            recent_at: 0,
            service: 1 << 10,
            stale_after: 0,
            last_finish: 0,
            taken: 0,
            vetoed: 0,
        }
    }

    pub fn pending(&self) -> u32 {
        self.reads + self.writes
    }

    /// Mean read latency since the beginning; 0 when nothing is known.
    pub fn mean(&self) -> u64 {
        self.wait.checked_div(self.ios).unwrap_or(0)
    }

    /// Mean read latency since the last checkpoint; 0 (unknown) while it is being probed, and without reads since.
    pub fn checkpoint_mean(&self) -> u64 {
        let ios = self.ios - self.base_ios;
        if ios == 0 || self.age < 0 {
            0
        } else {
            (self.wait - self.base_wait) / ios
        }
    }
}

/// The array as policies see it.
#[derive(Clone, Debug)]
pub struct State {
    pub members: Vec<Member>,
    /// Sectors read by the whole array: btrfs counts them in 32 bits, data and metadata alike.
    pub sectors_read: u32,
    pub decisions: u64,
    age_limit: i32,
    probes: i32,
    recent: Recent,
    hst: Option<Box<[u64; 64]>>,
}

/// How `Member::recent` is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Recent {
    No,
    /// Exponential mean with weight 2^-shift.
    Shift(u32),
    /// Exponential mean whose memory is this many ns.
    Window(u64),
}

impl State {
    pub fn new(members: Vec<Traits>, policy: &Policy) -> Self {
        let (age_limit, probes) = policy.ageing();
        State {
            members: members.into_iter().map(Member::new).collect(),
            sectors_read: 0,
            decisions: 0,
            age_limit,
            probes,
            recent: match policy {
                Policy::Sed { shift, .. } => Recent::Shift(*shift),
                Policy::QueueAdaptive { window, .. } => Recent::Window(*window),
                _ => Recent::No,
            },
            hst: match policy {
                Policy::DmHistorical { base, .. } => Some(Box::new(super::dm::weights(*base))),
                _ => None,
            },
        }
    }

    /// A read goes to `copies[chosen]`.
    #[inline]
    pub fn read_sent(&mut self, copies: &[Copy], chosen: usize, request: &Request) {
        self.decisions += 1;
        self.sectors_read = self.sectors_read.wrapping_add((u64::from(request.length) / SECTOR) as u32);
        for (index, copy) in copies.iter().enumerate() {
            let member = &mut self.members[copy.member as usize];
            if index == chosen {
                member.age = if member.age < 0 { member.age + 1 } else { 0 };
                member.ignored -= 1;
                member.taken = self.decisions;
                member.reads += 1;
                member.bytes += u64::from(request.length);
                if member.next_read != copy.address {
                    member.run_start = copy.address;
                }
                member.next_read = copy.address + u64::from(request.length);
                member.last_end = member.next_read;
            } else {
                member.ignored += 1;
                member.age += 1;
                if member.age > self.age_limit {
                    member.base_ios = member.ios;
                    member.base_wait = member.wait;
                    member.checkpoints += 1;
                    member.age = -self.probes;
                }
            }
        }
    }

    /// A read that was sent at `sent` has come back at `now`; `good` is false when it failed (then it tells no latency).
    #[inline]
    pub fn read_done(&mut self, copy: Copy, length: u32, sent: u64, now: u64, good: bool) {
        let valid = self.members.len() as u64;
        let member = &mut self.members[copy.member as usize];
        member.reads -= 1;
        member.bytes -= u64::from(length);
        member.head = copy.address + u64::from(length);
        if !good {
            return;
        }
        let latency = now - sent;
        member.ios += 1;
        member.wait += latency;
        // bcachefs skips the update in 31 of 32 clock ticks when the sample is within 50 % (fs/bcachefs, 6.12).
        if member.ewma.abs_diff(latency) >= member.ewma >> 1 || now & 31 == 0 {
            member.ewma = ((member.ewma << 5) - member.ewma + latency) >> 5;
        }
        match self.recent {
            Recent::No => {}
            Recent::Shift(shift) => {
                member.recent = if member.recent == 0 {
                    latency
                } else {
                    member.recent - (member.recent >> shift) + (latency >> shift)
                }
            }
            Recent::Window(window) => {
                let passed = now - member.recent_at;
                member.recent = if member.recent == 0 || passed >= window {
                    latency
                } else {
                    // At least 1/16 of the new sample, so that a burst within one tick counts.
                    let part = (passed * 1024 / window).max(64);
                    (member.recent * (1024 - part) + latency * part) / 1024
                };
                member.recent_at = now;
            }
        }
        if let Some(weights) = &self.hst {
            super::dm::finished(member, weights, sent, now, valid);
        }
    }

    /// A write goes to `member` (of all that hold a copy).
    pub fn write_sent(&mut self, copy: Copy, length: u32) {
        let member = &mut self.members[copy.member as usize];
        member.writes += 1;
        member.bytes += u64::from(length);
        member.last_end = copy.address + u64::from(length);
    }

    pub fn write_done(&mut self, copy: Copy, length: u32) {
        let member = &mut self.members[copy.member as usize];
        member.writes -= 1;
        member.bytes -= u64::from(length);
        member.head = copy.address + u64::from(length);
    }
}
