//! The native core of iodelta: read policies written once, driven by a simulator and by a real mirror; and a quick
//! reader of fio's latency bins.

pub mod bins;
pub mod mirror;
pub mod policy;
#[cfg(feature = "python")]
mod python;
pub mod rng;
pub mod sim;
pub mod slots;
pub mod tally;
pub mod workload;
