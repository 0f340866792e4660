//! `simulate`: worlds as dictionaries, over the cores, without the interpreter's lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::{policy, tally_out, TraitsIn, WorkloadIn};
use crate::policy::Policy;
use crate::rng::Rng;
use crate::sim::empirical::{Curve, EmpiricalModel};
use crate::sim::flash::FlashModel;
use crate::sim::hdd::HddModel;
use crate::sim::worlds::each;
use crate::sim::{Background, Cache, Kind, Layout, MemberModel, Model, Ns, Outcome, World, SECOND};
use crate::workload::Workload;

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct HddIn {
    settle: u64,
    mean_seek: u64,
    revolution: u64,
    bytes_per_second: u64,
    skip: u64,
    starvation: u64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct FlashIn {
    channels: usize,
    read: u64,
    write: u64,
    bytes_per_second: u64,
    stall_part: f64,
    stall: u64,
    spread: u64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct CurveIn {
    depths: Vec<u32>,
    latency: Vec<f64>,
    shapes: Vec<Vec<f64>>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct EmpiricalIn {
    read: CurveIn,
    large: Option<CurveIn>,
    write: Option<CurveIn>,
    read_beside: Option<CurveIn>,
    write_beside: Option<CurveIn>,
    slice: f64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct MemberIn {
    traits: TraitsIn,
    capacity: u64,
    hdd: Option<HddIn>,
    flash: Option<FlashIn>,
    empirical: Option<EmpiricalIn>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct LayoutIn {
    kind: String,
    copies: usize,
    pairs: usize,
    chunks: usize,
    chunk: u64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct CacheIn {
    hit: u64,
    bypass: u32,
    fill: f64,
    per_member: bool,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct BackgroundIn {
    pid: u32,
    reads: u32,
    read_length: u32,
    large_writes: u32,
    large_length: u32,
    small_writes: u32,
    small_length: u32,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct RunIn {
    policy: String,
    workload: WorkloadIn,
    background: Option<BackgroundIn>,
    ramp: f64,
    seconds: f64,
    trace: f64,
    cold: bool,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct WorldIn {
    seed: u64,
    members: Vec<MemberIn>,
    layout: LayoutIn,
    cache: Option<CacheIn>,
    runs: Vec<RunIn>,
}

struct Run {
    policy: Policy,
    workload: Workload,
    background: Option<Background>,
    ramp: Ns,
    measured: Ns,
    trace: Ns,
    cold: bool,
}

struct Prepared {
    seed: u64,
    members: Vec<MemberModel>,
    layout: Layout,
    cache: Option<Cache>,
    runs: Vec<Run>,
}

fn bad(text: impl Into<String>) -> PyErr {
    PyValueError::new_err(text.into())
}

fn curve(given: CurveIn) -> PyResult<Curve> {
    let curve = Curve { depths: given.depths, latency: given.latency, shapes: given.shapes };
    curve.check().map_err(bad)?;
    Ok(curve)
}

fn member(given: MemberIn) -> PyResult<MemberModel> {
    let traits = given.traits.build()?;
    let model = match (given.hdd, given.flash, given.empirical) {
        (Some(hdd), None, None) => {
            if hdd.revolution == 0 || hdd.bytes_per_second == 0 || given.capacity == 0 {
                return Err(bad("a disk needs a revolution, a rate and a capacity above 0"));
            }
            Model::Hdd(HddModel {
                settle: hdd.settle,
                mean_seek: hdd.mean_seek,
                revolution: hdd.revolution,
                bytes_per_second: hdd.bytes_per_second,
                capacity: given.capacity,
                skip: hdd.skip,
                starvation: hdd.starvation,
            })
        }
        (None, Some(flash), None) => {
            if flash.channels == 0 || flash.bytes_per_second == 0 || !(0.0..=1.0).contains(&flash.stall_part) {
                return Err(bad("flash needs channels and a rate above 0, and a part of stalls from 0 to 1"));
            }
            Model::Flash(FlashModel {
                channels: flash.channels,
                read: flash.read,
                write: flash.write,
                bytes_per_second: flash.bytes_per_second,
                stalls: (flash.stall_part * f64::from(u32::MAX)) as u32,
                stall: flash.stall,
                spread: flash.spread,
            })
        }
        (None, None, Some(found)) => Model::Empirical(Box::new(EmpiricalModel {
            read: curve(found.read)?,
            large: found.large.map(curve).transpose()?,
            write: found.write.map(curve).transpose()?,
            read_beside: found.read_beside.map(curve).transpose()?,
            write_beside: found.write_beside.map(curve).transpose()?,
            slice: time(found.slice)?,
        })),
        _ => return Err(bad("a member is one of hdd, flash and empirical")),
    };
    Ok(MemberModel { traits, model, capacity: given.capacity })
}

fn time(seconds: f64) -> PyResult<Ns> {
    if (0.0..=1e7).contains(&seconds) {
        Ok((seconds * SECOND as f64) as Ns)
    } else {
        Err(bad(format!("{seconds} seconds")))
    }
}

fn prepare(given: WorldIn) -> PyResult<Prepared> {
    if given.members.is_empty() || given.members.len() > 4096 {
        return Err(bad(format!("an array of {} members; 1 to 4096 can be simulated", given.members.len())));
    }
    let members = given.members.into_iter().map(member).collect::<PyResult<Vec<_>>>()?;
    let kind = match given.layout.kind.as_str() {
        "mirror" => Kind::Mirror,
        "raid1" => Kind::Raid1 { copies: given.layout.copies },
        "raid10" => Kind::Raid10 { pairs: given.layout.pairs },
        other => return Err(bad(format!("no layout {other:?}; known: mirror, raid1, raid10"))),
    };
    let capacities: Vec<u64> = members.iter().map(|member| member.capacity).collect();
    let mut rng = Rng::new(given.seed, 0);
    let layout = Layout::new(kind, &capacities, given.layout.chunks, given.layout.chunk, &mut rng).map_err(bad)?;
    let mut runs = Vec::with_capacity(given.runs.len());
    for run in given.runs {
        let workload = run.workload.build()?;
        if workload.size > layout.size {
            return Err(bad(format!("{} bytes are asked for, the array has {}", workload.size, layout.size)));
        }
        let background = match run.background {
            Some(load) if load.read_length == 0 || load.large_length == 0 || load.small_length == 0 => {
                return Err(bad("the background load's lengths are above 0"))
            }
            load => load.map(|load| Background {
                pid: load.pid,
                reads: load.reads,
                read_length: load.read_length,
                large_writes: load.large_writes,
                large_length: load.large_length,
                small_writes: load.small_writes,
                small_length: load.small_length,
            }),
        };
        runs.push(Run {
            policy: policy(&run.policy)?,
            workload,
            background,
            ramp: time(run.ramp)?,
            measured: time(run.seconds)?,
            trace: time(run.trace)?,
            cold: run.cold,
        });
    }
    let cache = given.cache.map(|cache| {
        let copies = if cache.per_member { layout.copies } else { 1 };
        Cache::new(cache.hit, cache.bypass, cache.fill, layout.size, copies, given.seed)
    });
    Ok(Prepared { seed: given.seed, members, layout, cache, runs })
}

fn run(world: &Prepared, stop: &AtomicBool) -> Vec<Outcome> {
    let mut cache = world.cache.clone();
    let mut outcomes = Vec::with_capacity(world.runs.len());
    for (index, run) in world.runs.iter().enumerate() {
        if let (true, Some(cache)) = (run.cold, cache.as_mut()) {
            cache.clear();
        }
        let seed = world.seed.wrapping_mul(1_000_003).wrapping_add(index as u64);
        let one = World::new(&world.members, &world.layout, &run.policy, cache.as_mut(), seed);
        outcomes.push(one.run(&run.workload, run.background.as_ref(), run.ramp, run.measured, run.trace, stop));
    }
    outcomes
}

fn outcome_out<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("read", tally_out(py, &outcome.read)?)?;
    out.set_item("write", tally_out(py, &outcome.write)?)?;
    out.set_item("seconds", outcome.seconds)?;
    out.set_item("events", outcome.events)?;
    out.set_item("unfinished", outcome.unfinished)?;
    out.set_item("background_reads", outcome.background_reads)?;
    out.set_item("background_writes", outcome.background_writes)?;
    let members = PyList::empty(py);
    for share in &outcome.members {
        let member = PyDict::new(py);
        member.set_item("reads", share.reads)?;
        member.set_item("writes", share.writes)?;
        member.set_item("read_bytes", share.read_bytes)?;
        member.set_item("hits", share.hits)?;
        member.set_item("wait", share.wait)?;
        member.set_item("age", share.age)?;
        member.set_item("ignored", share.ignored)?;
        member.set_item("checkpoints", share.checkpoints)?;
        members.append(member)?;
    }
    out.set_item("members", members)?;
    out.set_item("trace", outcome.trace.clone())?;
    Ok(out)
}

/// Runs each world's runs one after another, the worlds on `threads` threads. Returns a list of lists of outcomes.
#[pyfunction]
pub fn simulate<'py>(py: Python<'py>, worlds: Vec<Bound<'py, PyAny>>, threads: usize) -> PyResult<Bound<'py, PyList>> {
    let prepared = worlds.iter().map(|world| prepare(world.extract()?)).collect::<PyResult<Vec<_>>>()?;
    let stop = AtomicBool::new(false);
    let mut raised = None;
    let outcomes = py.allow_threads(|| {
        std::thread::scope(|scope| {
            let work = scope.spawn(|| each(prepared.len(), threads, |index| run(&prepared[index], &stop)));
            let mut pause = Duration::from_millis(1);
            while !work.is_finished() {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
                if let (None, Err(error)) = (&raised, Python::with_gil(|py| py.check_signals())) {
                    raised = Some(error);
                    stop.store(true, Ordering::Relaxed);
                }
            }
            work.join()
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let outcomes = outcomes.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let list = PyList::empty(py);
    for world in &outcomes {
        let runs = PyList::empty(py);
        for outcome in world {
            runs.append(outcome_out(py, outcome)?)?;
        }
        list.append(runs)?;
    }
    Ok(list)
}
