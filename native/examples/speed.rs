//! Completions per second of the simulator on this core, for the speeds that are promised.

use std::sync::atomic::AtomicBool;

use iodelta_native::policy::{catalogue, Traits};
use iodelta_native::rng::Rng;
use iodelta_native::sim::hdd::HddModel;
use iodelta_native::sim::{Kind, Layout, MemberModel, Model, World, SECOND};
use iodelta_native::workload::Workload;

static GO_ON: AtomicBool = AtomicBool::new(false);

/// CPU time of this thread: the machine may be shared.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes into `time` and nothing else.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    let model = HddModel::of_rpm(7200, 150, 2 * SECOND);
    let members: Vec<MemberModel> = (0..6)
        .map(|n| MemberModel {
            traits: Traits::new(n + 1, true),
            model: Model::Hdd(model.clone()),
            capacity: model.capacity,
        })
        .collect();
    let capacities = vec![model.capacity; 6];
    let layout = Layout::new(Kind::Raid1 { copies: 2 }, &capacities, 50, 1 << 30, &mut Rng::new(1, 0)).unwrap();
    for policy in ["queue", "latency", "zfs", "round-robin"] {
        let parsed = catalogue::parse(policy).unwrap();
        for (iodepth, seconds) in [(1, 30_000), (32, 6_000)] {
            let workload = Workload {
                random: true,
                length: 4096,
                iodepth,
                jobs: 1,
                read_percent: 100,
                size: layout.size,
                seed: 7,
                pids: vec![1000],
                rate: 0.0,
            };
            let mut rates = Vec::new();
            for _ in 0..5 {
                let begun = cpu_seconds();
                let world = World::new(&members, &layout, &parsed, None, 7);
                let outcome = world.run(&workload, None, 0, seconds * SECOND, 0, &GO_ON);
                rates.push((
                    outcome.events as f64 / (cpu_seconds() - begun) / 1e6,
                    outcome.read.ios as f64 / outcome.seconds,
                ));
            }
            rates.sort_by(|a, b| a.0.total_cmp(&b.0));
            println!(
                "{policy:12} depth {iodepth:2}: {:.2} M completions/s ({:.2} to {:.2}), {:.1} IOPS",
                rates[2].0, rates[0].0, rates[4].0, rates[0].1
            );
        }
    }
}
