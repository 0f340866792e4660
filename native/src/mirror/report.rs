//! What a run of the mirror is asked for, and what it tells.

use crate::policy::{Policy, Traits};
use crate::tally::Tally;
use crate::workload::Workload;

#[derive(Clone, Debug)]
pub struct MemberSpec {
    pub path: String,
    pub traits: Traits,
}

/// One run. Times are ns.
#[derive(Clone, Debug)]
pub struct Spec {
    pub members: Vec<MemberSpec>,
    pub policy: Policy,
    pub workload: Workload,
    pub direct: bool,
    pub ramp: u64,
    pub measured: u64,
    /// A member that has not answered for so long is used no more until it does.
    pub stall: u64,
    /// Time between two samples of what is in flight; 0 takes none.
    pub trace: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Finished,
    Stopped,
    /// No member was left that could be read, or written.
    NoMember,
    /// Many reads failed on every member.
    Unreadable,
    /// So much was stuck in stalled members that no memory was left to go on.
    Stuck,
}

#[derive(Clone, Debug, Default)]
pub struct MemberReport {
    pub path: String,
    pub direct: bool,
    pub reads: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub wait: u64,
    pub errors: u64,
    /// The first error's number; 0 for a read that came back short.
    pub first_error: Option<i32>,
    pub dropped: bool,
    pub stalls: u64,
    /// I/Os that had not come back in the end.
    pub lost: u64,
    pub age: i64,
    pub ignored: i64,
    pub checkpoints: u32,
}

#[derive(Clone, Debug)]
pub struct Report {
    pub read: Tally,
    pub write: Tally,
    /// Measured ns; shorter than asked for when the run ended early.
    pub measured: u64,
    pub ended: Ended,
    pub members: Vec<MemberReport>,
    /// Reads that came from another member after the first had failed.
    pub retried: u64,
    /// Reads that failed on every member.
    pub unreadable: u64,
    /// Reads and writes completed in each whole second of the measured time.
    pub per_second: Vec<(u64, u64)>,
    pub trace: Vec<Vec<u32>>,
    pub registered: bool,
}
