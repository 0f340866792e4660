//! What Python sees. Structures come in as dictionaries, results go out as dictionaries; ValueError for a bad one.

mod mirror;
mod results;
mod simulate;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::policy::catalogue::{parse, CATALOGUE};
use crate::policy::{Policy, Traits};
use crate::tally::Tally;
use crate::workload::Workload;

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct WorkloadIn {
    random: bool,
    length: u32,
    iodepth: u32,
    read_percent: u32,
    size: u64,
    seed: u64,
    pids: Vec<u32>,
    rate: f64,
}

impl WorkloadIn {
    fn build(self) -> PyResult<Workload> {
        let workload = Workload {
            random: self.random,
            length: self.length,
            iodepth: self.iodepth,
            jobs: self.pids.len() as u32,
            read_percent: self.read_percent,
            size: self.size,
            seed: self.seed,
            pids: self.pids,
            rate: self.rate,
        };
        workload.check().map_err(PyValueError::new_err)?;
        Ok(workload)
    }
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TraitsIn {
    devid: u64,
    rotational: bool,
    weight: u32,
    optimal_io: u32,
}

impl TraitsIn {
    fn build(&self) -> PyResult<Traits> {
        if self.weight > 100 {
            return Err(PyValueError::new_err(format!("a weight of {} is not within 0 to 100", self.weight)));
        }
        Ok(Traits { devid: self.devid, rotational: self.rotational, weight: self.weight, optimal_io: self.optimal_io })
    }
}

fn policy(text: &str) -> PyResult<Policy> {
    parse(text).map_err(PyValueError::new_err)
}

fn tally_out<'py>(py: Python<'py>, tally: &Tally) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("ios", tally.ios)?;
    out.set_item("bytes", tally.bytes)?;
    out.set_item("min", if tally.ios == 0 { 0 } else { tally.min })?;
    out.set_item("max", tally.max)?;
    out.set_item("mean", tally.mean())?;
    out.set_item("stddev", tally.stddev())?;
    let bins = PyDict::new(py);
    for (index, count) in tally.bins.iter().enumerate().filter(|(_, count)| **count > 0) {
        bins.set_item(index, *count)?;
    }
    out.set_item("bins", bins)?;
    Ok(out)
}

/// Every policy: name, rule, source, ties, parameters (name, default, meaning).
#[pyfunction]
fn policies(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for entry in CATALOGUE {
        let out = PyDict::new(py);
        out.set_item("name", entry.name)?;
        out.set_item("rule", entry.rule)?;
        out.set_item("source", entry.source)?;
        out.set_item("ties", entry.ties)?;
        let parameters: Vec<(&str, &str, &str)> =
            entry.parameters.iter().map(|one| (one.name, one.default, one.meaning)).collect();
        out.set_item("parameters", parameters)?;
        list.append(out)?;
    }
    Ok(list)
}

/// Raises ValueError when `text` is no policy.
#[pyfunction]
fn check_policy(text: &str) -> PyResult<()> {
    policy(text).map(|_| ())
}

#[pymodule]
fn iodelta_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(results::take_bins, module)?)?;
    module.add_function(wrap_pyfunction!(results::take_rows, module)?)?;
    module.add_function(wrap_pyfunction!(policies, module)?)?;
    module.add_function(wrap_pyfunction!(check_policy, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(mirror::run, module)?)?;
    module.add_function(wrap_pyfunction!(mirror::sizes, module)?)?;
    module.add_function(wrap_pyfunction!(mirror::compare, module)?)?;
    Ok(())
}
