//! A real mirror in user space: reads by io_uring, each sent to the member that a read policy chooses.

mod members;
mod report;
mod ring;
mod run;

pub use members::{compare, sizes, Difference, Sample};
pub use report::{Ended, MemberReport, MemberSpec, Report, Spec};
pub use run::run;
