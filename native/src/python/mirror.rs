//! `mirror`, `sizes` and `compare`: real members, without the interpreter's lock; a signal ends them.

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::{policy, tally_out, TraitsIn, WorkloadIn};
use crate::mirror::{self, Ended, MemberSpec, Spec};

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct MemberIn {
    path: String,
    traits: TraitsIn,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct SpecIn {
    members: Vec<MemberIn>,
    policy: String,
    workload: WorkloadIn,
    direct: bool,
    ramp: f64,
    seconds: f64,
    stall: f64,
    trace: f64,
}

/// Whether no signal asks for an end; what a handler raised is kept for the caller.
fn asker(raised: &mut Option<PyErr>) -> impl FnMut() -> bool + '_ {
    move || match Python::with_gil(|py| py.check_signals()) {
        Ok(()) => true,
        Err(error) => {
            *raised = Some(error);
            false
        }
    }
}

fn ns(seconds: f64) -> PyResult<u64> {
    if (0.0..=1e7).contains(&seconds) {
        Ok((seconds * 1e9) as u64)
    } else {
        Err(PyValueError::new_err(format!("{seconds} seconds")))
    }
}

/// Runs a mirror. Raises ValueError for a bad request, OSError when it cannot run, and what a signal's handler raises.
#[pyfunction(name = "mirror")]
pub fn run<'py>(py: Python<'py>, spec: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let given: SpecIn = spec.extract()?;
    let members =
        given.members.into_iter().map(|member| Ok(MemberSpec { path: member.path, traits: member.traits.build()? }));
    let spec = Spec {
        members: members.collect::<PyResult<_>>()?,
        policy: policy(&given.policy)?,
        workload: given.workload.build()?,
        direct: given.direct,
        ramp: ns(given.ramp)?,
        measured: ns(given.seconds)?,
        stall: ns(given.stall)?.max(1_000_000),
        trace: ns(given.trace)?,
    };
    let mut raised = None;
    let report = py.allow_threads(|| mirror::run(&spec, asker(&mut raised)));
    if let Some(error) = raised {
        return Err(error);
    }
    let report = report.map_err(PyOSError::new_err)?;
    let out = PyDict::new(py);
    out.set_item("read", tally_out(py, &report.read)?)?;
    out.set_item("write", tally_out(py, &report.write)?)?;
    out.set_item("seconds", report.measured as f64 / 1e9)?;
    let ended = match report.ended {
        Ended::Finished => "finished",
        Ended::Stopped => "stopped",
        Ended::NoMember => "no member",
        Ended::Unreadable => "unreadable",
        Ended::Stuck => "stuck",
    };
    out.set_item("ended", ended)?;
    out.set_item("retried", report.retried)?;
    out.set_item("unreadable", report.unreadable)?;
    out.set_item("per_second", report.per_second)?;
    out.set_item("trace", report.trace)?;
    out.set_item("registered", report.registered)?;
    let members = PyList::empty(py);
    for found in &report.members {
        let member = PyDict::new(py);
        member.set_item("path", &found.path)?;
        member.set_item("direct", found.direct)?;
        member.set_item("reads", found.reads)?;
        member.set_item("writes", found.writes)?;
        member.set_item("read_bytes", found.read_bytes)?;
        member.set_item("wait", found.wait)?;
        member.set_item("errors", found.errors)?;
        member.set_item("first_error", found.first_error)?;
        member.set_item("dropped", found.dropped)?;
        member.set_item("stalls", found.stalls)?;
        member.set_item("lost", found.lost)?;
        member.set_item("age", found.age)?;
        member.set_item("ignored", found.ignored)?;
        member.set_item("checkpoints", found.checkpoints)?;
        members.append(member)?;
    }
    out.set_item("members", members)?;
    Ok(out)
}

/// Bytes of each file or device. Raises OSError.
#[pyfunction]
pub fn sizes(paths: Vec<String>) -> PyResult<Vec<u64>> {
    mirror::sizes(&paths).map_err(PyOSError::new_err)
}

/// Compares the first `size` bytes of all with the first path's: `pieces` random MiB and both ends, or all with 0.
/// Returns the bytes compared, and path and offset of the first difference or None. Raises OSError.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    paths: Vec<String>,
    size: u64,
    pieces: u64,
    seed: u64,
) -> PyResult<(u64, Option<(String, u64)>)> {
    let mut raised = None;
    let found = py.allow_threads(|| mirror::compare(&paths, size, pieces, seed, asker(&mut raised)));
    if let Some(error) = raised {
        return Err(error);
    }
    let sample = found.map_err(PyOSError::new_err)?;
    Ok((sample.compared, sample.difference.map(|difference| (difference.path, difference.offset))))
}
