//! `take_bins` and `take_rows`: what is long in fio's results.

use pyo3::prelude::*;
use pyo3::sync::GILOnceCell;
use pyo3::types::{PyBytes, PyInt, PyList, PyTuple};

use crate::{bins, rows};

/// Numbers below this are made once: those of bins, and most counts.
const KEPT: u64 = 8192;

static NUMBERS: GILOnceCell<Vec<Py<PyInt>>> = GILOnceCell::new();

/// `text` with each of its histograms replaced by its number in brackets, and these histograms: numbers of the bins that hold
/// something, ascending, and their counts. None where there is one that fio cannot have written.
#[pyfunction]
pub fn take_bins<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyList>)>> {
    let numbers = NUMBERS.get_or_try_init(py, || {
        (0..KEPT).map(|number| Ok(number.into_pyobject(py)?.unbind())).collect::<PyResult<_>>()
    })?;
    let number = |value: u64| match usize::try_from(value).ok().and_then(|value| numbers.get(value)) {
        Some(kept) => Ok(kept.bind(py).clone()),
        None => value.into_pyobject(py),
    };
    let all = PyList::empty(py);
    let rest = bins::take(text, |indexes, counts| {
        let indexes = PyTuple::new(py, indexes.iter().map(|index| numbers[usize::from(*index)].bind(py)))?;
        let counts: Result<Vec<_>, _> = counts.iter().map(|count| number(*count)).collect();
        all.append((indexes, PyTuple::new(py, counts?)?))
    })?;
    Ok(rest.map(|rest| (PyBytes::new(py, &rest), all)))
}

/// Time, value, direction and block size of every row of a fio log in `text`, each column as int64 in this machine's order;
/// the last two stand `shift` columns further on. None where a row is not as fio writes it.
#[pyfunction]
pub fn take_rows<'py>(py: Python<'py>, text: &[u8], shift: usize) -> Option<Vec<Bound<'py, PyBytes>>> {
    let columns = py.allow_threads(|| rows::take(text, shift))?;
    Some(columns.iter().map(|column| PyBytes::new(py, column)).collect())
}
