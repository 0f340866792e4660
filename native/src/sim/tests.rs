//! The simulator against closed forms.

use std::sync::atomic::AtomicBool;

use super::empirical::{Curve, EmpiricalModel};
use super::flash::FlashModel;
use super::hdd::HddModel;
use super::*;
use crate::policy::catalogue::parse;
use crate::policy::Traits;
use crate::rng::Rng;
use crate::workload::Workload;

static GO_ON: AtomicBool = AtomicBool::new(false);

/// A member that ends so many reads a second at any depth, one after another.
fn limited(devid: u64, per_second: f64) -> MemberModel {
    let curve = Curve { depths: vec![1], latency: vec![1e9 / per_second], shapes: vec![] };
    let model = Model::Empirical(Box::new(EmpiricalModel { read: curve, ..EmpiricalModel::default() }));
    MemberModel { traits: Traits::new(devid, true), model, capacity: 1 << 30 }
}

fn disk(devid: u64) -> MemberModel {
    let model = HddModel::of_rpm(7200, 170, 2 * SECOND);
    MemberModel { traits: Traits::new(devid, true), capacity: model.capacity, model: Model::Hdd(model) }
}

fn flash(devid: u64, stall_percent: u32) -> MemberModel {
    let model = FlashModel {
        channels: 8,
        read: 100_000,
        write: 100_000,
        bytes_per_second: 2 << 30,
        stalls: u32::MAX / 100 * stall_percent,
        stall: 8_000_000,
        spread: 0,
    };
    MemberModel { traits: Traits::new(devid, false), capacity: 1 << 40, model: Model::Flash(model) }
}

fn workload(iodepth: u32, size: u64, pid: u32) -> Workload {
    let pids = vec![pid];
    Workload { random: true, length: 4096, iodepth, jobs: 1, read_percent: 100, size, seed: 5, pids, rate: 0.0 }
}

fn mirror(members: &[MemberModel]) -> Layout {
    let capacities: Vec<u64> = members.iter().map(|member| member.capacity).collect();
    Layout::new(Kind::Mirror, &capacities, 0, 1 << 30, &mut Rng::new(1, 0)).expect("a mirror of them")
}

fn measure(members: &[MemberModel], policy: &str, work: &Workload, seconds: u64) -> Outcome {
    let layout = mirror(members);
    let policy = parse(policy).expect("a policy of the catalogue");
    World::new(members, &layout, &policy, None, 3).run(work, None, SECOND, seconds * SECOND, 0, &GO_ON)
}

fn iops(outcome: &Outcome) -> f64 {
    outcome.read.ios as f64 / outcome.seconds
}

#[test]
fn two_members_of_900_and_300_reads_give_the_closed_forms_at_depth_32() {
    let members = [limited(1, 900.0), limited(2, 300.0)];
    for (policy, pid, expected) in [
        ("queue", 0, 1200.0),
        ("round-robin", 0, 600.0),
        ("pid", 0, 900.0),
        ("pid", 1, 300.0),
        ("devid:2", 0, 300.0),
        ("latency", 0, 900.0),
        ("queue-length", 0, 1200.0),
        ("queue-reads", 0, 1200.0),
    ] {
        let found = iops(&measure(&members, policy, &workload(32, 1 << 30, pid), 60));
        assert!((found / expected - 1.0).abs() < 0.03, "{policy}, pid {pid}: {found} against {expected}");
    }
}

#[test]
fn latency_stays_locked_in_on_the_slow_member_after_one_bad_sample_of_the_fast_one() {
    // The first read of member 0 took 1 s; until it is rehabilitated nobody learns that it does 900 a second.
    let members = [limited(1, 900.0), limited(2, 300.0)];
    let layout = mirror(&members);
    let policy = parse("latency").expect("a policy of the catalogue");
    let mut world = World::new(&members, &layout, &policy, None, 3);
    world.spoil(0, SECOND);
    let found = iops(&world.run(&workload(1, 1 << 30, 0), None, 0, 20 * SECOND, 0, &GO_ON));
    assert!((found / 300.0 - 1.0).abs() < 0.03, "{found}: 6000 decisions are not 10000");
}

#[test]
fn little_s_law_holds_in_every_run() {
    for (members, iodepth) in [(vec![disk(1), disk(2)], 32), (vec![flash(1, 5), flash(2, 0)], 7), (vec![disk(1)], 1)] {
        let outcome = measure(&members, "queue", &workload(iodepth, 1 << 30, 0), 100);
        let in_flight = iops(&outcome) * outcome.read.mean() / 1e9;
        assert!((in_flight / f64::from(iodepth) - 1.0).abs() < 0.01, "{in_flight} of {iodepth}");
        assert_eq!(outcome.members.iter().map(|share| share.reads).sum::<u64>(), outcome.read.ios);
    }
}

#[test]
fn a_disk_at_depth_one_takes_its_mean_seek_and_half_a_revolution() {
    let outcome = measure(&[disk(1)], "queue", &workload(1, 1 << 40, 0), 2000);
    let expected = 8.5e6 + 8.333e6 / 2.0 + 4096.0 / (170.0 * 1.048_576e6) * 1e9;
    assert!((outcome.read.mean() / expected - 1.0).abs() < 0.02, "{} against {expected}", outcome.read.mean());
}

#[test]
fn a_disk_streams_at_its_media_rate_and_sorts_what_is_queued() {
    let sequential = Workload { random: false, length: 1 << 20, ..workload(16, 1 << 40, 0) };
    let rate = iops(&measure(&[disk(1)], "queue", &sequential, 100));
    assert!((rate / 170.0 - 1.0).abs() < 0.01, "{rate} MiB/s");
    let depths = [1, 4, 16, 32].map(|depth| iops(&measure(&[disk(1)], "queue", &workload(depth, 1 << 40, 0), 300)));
    assert!(depths.windows(2).all(|pair| pair[1] > pair[0] * 1.1), "{depths:?}");
}

#[test]
fn a_starving_read_goes_first_after_the_bound() {
    let mut member = disk(1);
    let Model::Hdd(model) = &mut member.model else { unreachable!() };
    model.starvation = SECOND / 10;
    let bound = measure(&[member], "queue", &workload(32, 1 << 40, 0), 300);
    let free = measure(&[disk(1)], "queue", &workload(32, 1 << 40, 0), 300);
    assert!(bound.read.max < free.read.max && iops(&bound) < iops(&free), "fairness costs throughput");
}

#[test]
fn flash_fills_its_channels_and_stalls_as_often_as_it_is_told() {
    let one = iops(&measure(&[flash(1, 0)], "queue", &workload(1, 1 << 30, 0), 2));
    let many = iops(&measure(&[flash(1, 0)], "queue", &workload(32, 1 << 30, 0), 2));
    assert!((many / one / 8.0 - 1.0).abs() < 0.01, "{one} and {many}");
    let stalling = measure(&[flash(1, 5)], "queue", &workload(1, 1 << 30, 0), 100);
    let expected = 1e5 + 4096.0 * 8.0 / 2.147 + 0.05 * 8e6;
    assert!((stalling.read.mean() / expected - 1.0).abs() < 0.03, "{}", stalling.read.mean());
}

#[test]
fn an_empirical_device_returns_the_curve_and_the_shape_it_was_made_of() {
    let depths = vec![1, 2, 4, 8, 16, 32];
    let latency = vec![120e3, 130e3, 160e3, 240e3, 460e3, 920e3];
    let shape: Vec<f64> = (0..=100).map(|index| 0.5 + f64::from(index) / 100.0).collect();
    let read = Curve { depths: depths.clone(), latency: latency.clone(), shapes: vec![shape; 6] };
    let model = Model::Empirical(Box::new(EmpiricalModel { read, ..EmpiricalModel::default() }));
    let members = [MemberModel { traits: Traits::new(1, false), model, capacity: 1 << 30 }];
    for (depth, expected) in depths.iter().zip(latency) {
        let outcome = measure(&members, "queue", &workload(*depth, 1 << 30, 0), 20);
        assert!((outcome.read.mean() / expected - 1.0).abs() < 0.02, "depth {depth}: {}", outcome.read.mean());
        let p90 = outcome.read.quantile(0.9) / outcome.read.mean();
        assert!((p90 / 1.4 - 1.0).abs() < 0.15, "depth {depth}: p90 {p90} of the mean");
    }
}

/// A throttle of 0.1 s slices at 900 and 300 reads/s: its own rate at any depth, and what the quicker member did not do
/// in the slower one's turn it does at once.
#[test]
fn a_throttled_member_keeps_its_rate_and_costs_round_robin_nothing_while_it_was_idle() {
    let [quick, slow] = [900.0, 300.0].map(|rate| {
        let read = Curve { depths: vec![1], latency: vec![1e9 / rate], shapes: vec![vec![0.1, 0.1, 2.8]] };
        let model = EmpiricalModel { read, slice: SECOND / 10, ..EmpiricalModel::default() };
        MemberModel { model: Model::Empirical(Box::new(model)), ..limited(rate as u64, rate) }
    });
    let close = |members: &[MemberModel], policy: &str, depth: u32, expected: f64| {
        let found = iops(&measure(members, policy, &workload(depth, 1 << 30, 0), 20));
        assert!((found / expected - 1.0).abs() < 0.03, "{policy} at depth {depth}: {found} reads/s");
    };
    for depth in [1, 8, 64] {
        close(std::slice::from_ref(&quick), "queue", depth, 900.0);
        close(&[quick.clone(), slow.clone()], "round-robin", depth, 600.0);
    }
    close(&[quick, slow], "queue", 32, 1200.0);
}

#[test]
fn reads_and_writes_in_flight_together_take_what_was_measured_of_them_together() {
    let flat = |latency: f64| Curve { depths: vec![1, 32], latency: vec![latency, latency * 32.0], shapes: vec![] };
    let read_alone = flat(100e3);
    for (read_beside, slower) in [(None, false), (Some(flat(400e3)), true)] {
        let model = EmpiricalModel {
            read: read_alone.clone(),
            write: Some(flat(50e3)),
            write_beside: read_beside.as_ref().map(|_| flat(200e3)),
            read_beside,
            ..EmpiricalModel::default()
        };
        let member =
            MemberModel { traits: Traits::new(1, false), model: Model::Empirical(Box::new(model)), capacity: 1 << 30 };
        let mix = measure(&[member], "queue", &Workload { read_percent: 70, ..workload(32, 1 << 30, 0) }, 20);
        let total = (mix.read.ios + mix.write.ios) as f64 / mix.seconds;
        let (read, write) = if slower { (400e3, 200e3) } else { (100e3, 50e3) };
        let expected = 1e9 / (0.7 * read + 0.3 * write);
        assert!((total / expected - 1.0).abs() < 0.02, "{total} against {expected}");
    }
}

#[test]
fn writes_go_to_every_copy_and_end_with_the_slowest() {
    let members = [limited(1, 900.0), limited(2, 300.0)];
    let work = Workload { read_percent: 0, ..workload(8, 1 << 30, 0) };
    let outcome = measure(&members, "queue", &work, 60);
    let rate = outcome.write.ios as f64 / outcome.seconds;
    assert!((rate / 300.0 - 1.0).abs() < 0.03, "{rate}");
    assert!(outcome.members[0].writes.abs_diff(outcome.members[1].writes) <= 8);
}

#[test]
fn every_layout_puts_the_copies_of_each_offset_on_different_members() {
    let capacities = [1u64 << 35; 7];
    for (kind, copies) in [
        (Kind::Mirror, 7),
        (Kind::Raid1 { copies: 2 }, 2),
        (Kind::Raid1 { copies: 3 }, 3),
        (Kind::Raid1 { copies: 4 }, 4),
        (Kind::Raid10 { pairs: 3 }, 2),
    ] {
        let layout = Layout::new(kind, &capacities, 20, 1 << 30, &mut Rng::new(2, 0)).expect("it fits");
        let mut rng = Rng::new(3, 0);
        let mut found = Vec::new();
        for _ in 0..2000 {
            let offset = rng.below(layout.size / 4096) * 4096;
            let part = layout.locate(offset, 1 << 20, &mut found);
            assert!(part > 0 && part <= 1 << 20);
            assert_eq!(found.len(), copies);
            let mut members: Vec<u16> = found.iter().map(|copy| copy.member).collect();
            members.sort_unstable();
            members.dedup();
            assert_eq!(members.len(), copies, "{kind:?}");
            assert!(found.iter().all(|copy| copy.address + 4096 <= 1 << 35));
        }
    }
    assert!(Layout::new(Kind::Raid1 { copies: 8 }, &capacities, 1, 1 << 30, &mut Rng::new(2, 0)).is_err());
    assert!(Layout::new(Kind::Raid1 { copies: 2 }, &capacities, 199, 1 << 30, &mut Rng::new(2, 0)).is_err());
}

#[test]
fn raid10_cuts_large_reads_at_64_kib_and_uses_all_its_pairs() {
    let members: Vec<MemberModel> = (1..5).map(|devid| flash(devid, 0)).collect();
    let layout =
        Layout::new(Kind::Raid10 { pairs: 2 }, &[1 << 40; 4], 4, 1 << 30, &mut Rng::new(1, 0)).expect("it fits");
    let work = Workload { random: false, length: 1 << 20, ..workload(4, layout.size, 0) };
    let policy = parse("queue").expect("a policy of the catalogue");
    let outcome = World::new(&members, &layout, &policy, None, 1).run(&work, None, 0, SECOND, 0, &GO_ON);
    let parts: u64 = outcome.members.iter().map(|share| share.reads).sum();
    assert!(parts >= outcome.read.ios * 16 && parts <= (outcome.read.ios + 4) * 16, "{parts}");
    assert!(outcome.members.iter().all(|share| share.reads * 5 > parts));
}

#[test]
fn a_cache_makes_the_same_offsets_quick_and_leaves_new_ones_as_they_are() {
    let members = [disk(1), disk(2)];
    let layout = mirror(&members);
    let policy = parse("random").expect("a policy of the catalogue");
    let mut cache = Cache::new(100_000, 1 << 20, 1.0, layout.size, 1, 1);
    let mut run = |seed: u64| {
        let work = Workload { seed, ..workload(1, 1 << 34, 0) };
        iops(&World::new(&members, &layout, &policy, Some(&mut cache), 9).run(&work, None, 0, 30 * SECOND, 0, &GO_ON))
    };
    let (first, again, fresh) = (run(1), run(1), run(2));
    assert!(again > 1.9 * first, "{first} then {again}");
    assert!((fresh / first - 1.0).abs() < 0.1, "{first} and, elsewhere, {fresh}");
}

#[test]
fn the_same_seed_gives_the_same_world_to_the_last_digit() {
    let members = [disk(1), flash(2, 5), limited(3, 500.0)];
    let one = |_: usize| {
        let found = measure(&members, "sed", &workload(16, 1 << 30, 0), 20);
        (found.read.ios, found.read.sum, found.events)
    };
    assert_eq!(worlds::each(4, 2, one), vec![one(0); 4]);
}

#[test]
fn what_is_in_flight_is_sampled_and_adds_up_to_the_depth() {
    let members = [disk(1), disk(2)];
    let layout = mirror(&members);
    let policy = parse("queue").expect("a policy of the catalogue");
    let world = World::new(&members, &layout, &policy, None, 1);
    let outcome = world.run(&workload(12, 1 << 34, 0), None, 0, 10 * SECOND, SECOND / 10, &GO_ON);
    assert_eq!(outcome.trace.len(), 100);
    assert!(outcome.trace.iter().all(|sample| sample.iter().sum::<u32>() == 12));
}

/// `channels` servers whose reads take `fixed` ns and an exponential part of mean `spread` ns.
fn servers(channels: usize, fixed: Ns, spread: Ns) -> MemberModel {
    let model = FlashModel { channels, read: fixed, write: 1, bytes_per_second: 1 << 60, stalls: 0, stall: 0, spread };
    MemberModel { traits: Traits::new(1, false), capacity: 1 << 40, model: Model::Flash(model) }
}

fn open_load(rate: f64) -> Workload {
    Workload { rate, ..workload(1, 1 << 30, 0) }
}

/// Mean time in an M/M/c queue: Erlang's C.
fn erlang(channels: u32, rate: f64, service: f64) -> f64 {
    let offered = rate * service;
    let blocked = (1..=channels).fold(1.0, |b, n| offered * b / (f64::from(n) + offered * b));
    let used = offered / f64::from(channels);
    let waits = blocked / (1.0 - used + used * blocked);
    service + waits * service / (f64::from(channels) - offered)
}

#[test]
fn an_open_load_waits_as_long_as_the_closed_forms_of_queues_say() {
    for (channels, used, seconds) in [(1, 0.3, 4000), (1, 0.8, 20_000), (4, 0.8, 8000), (32, 0.9, 4000)] {
        let rate = used * f64::from(channels) * 100.0;
        let outcome = measure(&[servers(channels as usize, 1, 10_000_000)], "devid", &open_load(rate), seconds);
        let told = erlang(channels, rate, 0.01) * 1e9;
        assert!((outcome.read.mean() / told - 1.0).abs() < 0.03, "M/M/{channels} at {used}: {}", outcome.read.mean());
        assert!((iops(&outcome) / rate - 1.0).abs() < 0.01);
    }
    for used in [0.3, 0.8] {
        let outcome = measure(&[servers(1, 10_000_000, 0)], "devid", &open_load(100.0 * used), 10_000);
        let told = 0.01 * (1.0 + used / (2.0 * (1.0 - used))) * 1e9;
        assert!((outcome.read.mean() / told - 1.0).abs() < 0.03, "M/D/1 at {used}: {}", outcome.read.mean());
    }
}

#[test]
fn an_open_load_split_at_random_is_two_queues_and_joined_at_the_shorter_it_waits_less() {
    let pair = [servers(1, 1, 10_000_000), servers(1, 1, 10_000_000)];
    let mean = |policy: &str| measure(&pair, policy, &open_load(160.0), 10_000).read.mean() / 1e6;
    let (random, shortest) = (mean("random"), mean("queue"));
    assert!((random / 50.0 - 1.0).abs() < 0.03, "two M/M/1 at 0.8: {random} ms");
    let joined = erlang(2, 160.0, 0.01) * 1e3;
    assert!(joined < shortest && shortest < random, "{joined} < {shortest} < {random}");
}

#[test]
fn an_open_load_that_is_too_much_leaves_ever_more_unfinished() {
    let member = [servers(1, 10_000_000, 0)];
    let [short, long] = [10, 100].map(|seconds| measure(&member, "devid", &open_load(150.0), seconds).unfinished);
    assert!((400..700).contains(&short) && (4500..5500).contains(&long), "{short}, {long}: 50 a second");
    assert!(measure(&member, "devid", &open_load(50.0), 100).unfinished < 20);
}

#[test]
fn more_jobs_share_an_open_load_evenly() {
    let pair = [servers(8, 1_000_000, 0), servers(8, 1_000_000, 0)];
    let work = Workload { jobs: 2, pids: vec![6, 7], ..open_load(1000.0) };
    let outcome = measure(&pair, "pid", &work, 100);
    let part = outcome.members[0].reads as f64 / outcome.read.ios as f64;
    assert!((part - 0.5).abs() < 0.01, "{part}");
}
