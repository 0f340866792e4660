//! Discrete-event simulation of mirrored arrays: exact integer nanoseconds, seeded, one completion an event.

mod agenda;
pub mod cache;
pub mod device;
pub mod empirical;
pub mod flash;
pub mod hdd;
pub mod layout;
#[cfg(test)]
mod tests;
mod throttled;
pub mod world;
pub mod worlds;

pub use cache::Cache;
pub use device::{Device, Model};
pub use layout::{Kind, Layout};
pub use world::{Background, MemberModel, Outcome, World};

/// Time in ns; `NEVER` is after everything.
pub type Ns = u64;
pub const NEVER: Ns = u64::MAX;
pub const SECOND: Ns = 1_000_000_000;

/// One I/O on one device. `tag` is the caller's.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub tag: u32,
    pub address: u64,
    pub length: u32,
    pub write: bool,
}
