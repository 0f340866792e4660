//! The native core of iodelta: read policies written once, driven by a simulator and by a real mirror; and quick
//! readers of what is long in fio's results.

pub mod bins;
pub mod input;
pub mod mirror;
pub mod policy;
#[cfg(feature = "python")]
mod python;
pub mod rng;
pub mod rows;
pub mod sim;
pub mod slots;
pub mod tally;
pub mod workload;
