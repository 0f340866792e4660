//! Policies against sequences worked by hand from their sources.

use super::catalogue::{parse, CATALOGUE};
use super::{Copy, Policy, Request, State, Traits};
use crate::rng::Rng;

/// Members with devids 1, 2, ..; `rotational[i]` of each.
fn state(policy: &Policy, rotational: &[bool]) -> State {
    let traits = rotational.iter().enumerate().map(|(index, &one)| Traits::new(index as u64 + 1, one)).collect();
    State::new(traits, policy)
}

fn copies(members: &[u16]) -> Vec<Copy> {
    members.iter().map(|&member| Copy { member, address: 0 }).collect()
}

fn at(address: u64, members: &[u16]) -> Vec<Copy> {
    members.iter().map(|&member| Copy { member, address }).collect()
}

fn read(length: u32) -> Request {
    Request { offset: 0, length, pid: 0 }
}

fn named(text: &str) -> Policy {
    parse(text).expect("a policy of the catalogue")
}

/// Sends a read by the policy's own choice and says which member it went to.
fn send(policy: &Policy, state: &mut State, copies: &[Copy], request: &Request, now: u64, random: u64) -> u16 {
    let chosen = policy.choose(state, copies, request, now, random);
    state.read_sent(copies, chosen, request);
    copies[chosen].member
}

/// One read after another (depth 1), each taking its member's latency; the members in order.
fn serial(policy: &Policy, state: &mut State, copies: &[Copy], length: u32, latency: &[u64], count: usize) -> Vec<u16> {
    let mut now = 1;
    (0..count)
        .map(|_| {
            let member = send(policy, state, copies, &read(length), now, 0);
            let copy = copies.iter().find(|copy| copy.member == member).expect("it was chosen among them");
            state.read_done(*copy, length, now, now + latency[member as usize], true);
            now += latency[member as usize];
            member
        })
        .collect()
}

#[test]
fn every_policy_of_the_catalogue_has_a_source_a_tie_break_and_defaults_that_parse() {
    for entry in CATALOGUE {
        assert!(!entry.source.is_empty() && !entry.ties.is_empty(), "{}", entry.name);
        assert!(parse(entry.name).is_ok(), "{}", entry.name);
    }
    assert_eq!(CATALOGUE.len(), 19);
}

#[test]
fn a_policy_is_refused_with_what_would_be_allowed() {
    for (text, words) in [
        ("quene", "known: pid"),
        ("queue:tie=first", "it takes ties"),
        ("queue:ties=last", "first, rotate and random"),
        ("round-robin:5000", "multiple of the sector"),
        ("round-robin:256x", "not a number"),
        ("round-robin:99999999999999999999", "not a number"),
        ("pid:1", "it takes none"),
        ("historical-service-time:base=1024", "allowed are 0 to 1023"),
    ] {
        let told = parse(text).expect_err(text);
        assert!(told.contains(words), "{text}: {told}");
    }
    assert_eq!(named("round-robin:192k"), Policy::RoundRobin { min_contig: 196_608 });
}

#[test]
fn every_policy_takes_a_candidate_in_any_state() {
    let mut rng = Rng::new(11, 0);
    for entry in CATALOGUE {
        let policy = named(entry.name);
        let mut state = state(&policy, &[true, false, true, false, true]);
        let mut flying: Vec<(Copy, u64)> = Vec::new();
        for step in 1..4000u64 {
            let mut members: Vec<u16> = (0..5).collect();
            for index in (1..5).rev() {
                members.swap(index, rng.below(index as u64 + 1) as usize);
            }
            members.truncate(1 + rng.below(5) as usize);
            let copies: Vec<Copy> =
                members.iter().map(|&member| Copy { member, address: rng.below(1 << 40) & !4095 }).collect();
            let request = Request { offset: rng.below(1 << 40), length: 4096, pid: rng.below(1 << 22) as u32 };
            let chosen = policy.choose(&state, &copies, &request, step * 1000, rng.word());
            assert!(chosen < copies.len(), "{}", entry.name);
            state.read_sent(&copies, chosen, &request);
            flying.push((copies[chosen], step * 1000));
            if rng.below(3) > 0 {
                let (copy, sent) = flying.swap_remove(rng.below(flying.len() as u64) as usize);
                state.read_done(copy, 4096, sent, step * 1000 + 500, rng.below(10) > 0);
            }
        }
        let in_flight: u32 = state.members.iter().map(|member| member.reads).sum();
        assert_eq!(in_flight as usize, flying.len(), "{}: reads in flight are conserved", entry.name);
    }
}

#[test]
fn pid_is_decided_by_the_chunk_order_and_not_by_devid() {
    let policy = named("pid");
    let state = state(&policy, &[true, true, true]);
    let of = |pid: u32, members: &[u16]| {
        members[policy.choose(&state, &copies(members), &Request { pid, ..read(4096) }, 0, 0)]
    };
    assert_eq!([of(1000, &[0, 1]), of(1001, &[0, 1])], [0, 1]);
    assert_eq!([of(1000, &[1, 0]), of(1001, &[1, 0])], [1, 0]);
    assert_eq!([of(1001, &[0, 1, 2]), of(1002, &[0, 1, 2])], [2, 0]);
}

#[test]
fn round_robin_of_256k_sends_64_reads_of_4k_to_each_and_goes_by_devid() {
    let policy = named("round-robin");
    let mut state = state(&policy, &[true, true]);
    // Stripe order 1, 0: the turn still begins with the lower devid.
    let order: Vec<u16> = (0..192).map(|_| send(&policy, &mut state, &copies(&[1, 0]), &read(4096), 0, 0)).collect();
    let expected: Vec<u16> = (0..192).map(|index| (index / 64 % 2) as u16).collect();
    assert_eq!(order, expected);
}

#[test]
fn round_robin_never_switches_when_a_read_is_an_even_number_of_turns() {
    let policy = named("round-robin:256k");
    let mut state = state(&policy, &[true, true]);
    let order = serial(&policy, &mut state, &copies(&[0, 1]), 1 << 20, &[1, 1], 100);
    assert!(order.iter().all(|&member| member == 0), "1 MiB is four turns of two members");
}

#[test]
fn round_robin_of_192k_splits_reads_of_256k_two_to_one() {
    let policy = named("round-robin:192k");
    let mut state = state(&policy, &[true, true]);
    let order = serial(&policy, &mut state, &copies(&[0, 1]), 256 << 10, &[1, 1], 300);
    let first = order.iter().filter(|&&member| member == 0).count();
    // Starts at 0, 256k, 512k modulo 384k are 0, 256k, 128k: turns 0, 1, 0. Jain's v5 table has 2532 : 1276.
    assert_eq!(first, 200);
}

#[test]
fn round_robin_survives_the_wrap_of_its_32_bit_counter() {
    let policy = named("round-robin");
    let mut state = state(&policy, &[true, true, true]);
    state.sectors_read = u32::MAX - 10;
    for _ in 0..200 {
        send(&policy, &mut state, &copies(&[0, 1, 2]), &read(4096), 0, 0);
    }
    assert_eq!(state.sectors_read, 189);
}

#[test]
fn devid_takes_that_member_or_else_the_first_stripe() {
    let policy = named("devid:2");
    let state = state(&policy, &[true, true, true]);
    assert_eq!(policy.choose(&state, &copies(&[2, 1]), &read(4096), 0, 0), 1);
    assert_eq!(policy.choose(&state, &copies(&[2, 0]), &read(4096), 0, 0), 0);
}

#[test]
fn jains_latency_tries_each_once_and_then_never_leaves_the_best() {
    let policy = named("jain-latency");
    let mut state = state(&policy, &[true, true]);
    let order = serial(&policy, &mut state, &copies(&[0, 1]), 4096, &[10_000, 9_000], 30_000);
    assert_eq!(order[..3], [0, 1, 1]);
    assert_eq!(order.iter().filter(|&&member| member == 0).count(), 1, "no decay: 1 : 29999");
}

#[test]
fn latency_is_locked_in_for_10000_selections_and_then_probes_100_times() {
    let policy = named("latency");
    let mut state = state(&policy, &[true, true]);
    let order = serial(&policy, &mut state, &copies(&[0, 1]), 4096, &[9_000, 10_000], 12_000);
    assert_eq!(order[..3], [0, 1, 0]);
    let probes: Vec<usize> = (2..order.len()).filter(|&index| order[index] == 1).collect();
    // Selection 0 is member 0's, 1 is member 1's; its age passes 10000 with selection 2 + 10000.
    assert_eq!((probes[0], probes.len()), (10_003, 100));
    assert_eq!(state.members[1].checkpoints, 1);
}

#[test]
fn rehabilitation_forgets_what_was_slow_long_ago() {
    let policy = named("latency:age_limit=50,probes=10");
    let mut state = state(&policy, &[true, true]);
    serial(&policy, &mut state, &copies(&[0, 1]), 4096, &[1_000, 90_000], 40);
    // The slow one has become the fast one; only a checkpoint can find that out.
    let order = serial(&policy, &mut state, &copies(&[0, 1]), 4096, &[1_000, 100], 400);
    assert_eq!(order[..10], [0; 10]);
    assert_eq!(order[390..], [1; 10]);
}

#[test]
fn latency_rr_rotates_within_125_percent_and_leaves_out_the_rest() {
    let policy = named("latency-rr:min_contig=4k");
    let mut state = state(&policy, &[true, true, true]);
    let order = serial(&policy, &mut state, &copies(&[0, 1, 2]), 4096, &[1_000, 1_250, 1_251], 1000);
    let count = |member: u16| order.iter().filter(|&&one| one == member).count();
    assert_eq!(count(2), 1);
    assert!(count(0).abs_diff(count(1)) <= 2);
}

#[test]
fn queue_counts_reads_and_writes_and_queue_reads_only_reads() {
    let (all, reads) = (named("queue"), named("queue-reads"));
    let mut state = state(&all, &[true, true]);
    let pair = copies(&[0, 1]);
    state.read_sent(&pair, 1, &read(4096));
    state.write_sent(pair[0], 4096);
    state.write_sent(pair[0], 4096);
    assert_eq!(all.choose(&state, &pair, &read(4096), 0, 0), 1, "two writes against one read");
    assert_eq!(reads.choose(&state, &pair, &read(4096), 0, 0), 0);
}

#[test]
fn queue_at_depth_one_is_its_tie_break_and_nothing_else() {
    for (text, expected) in [("queue", [0, 0, 0, 0]), ("queue:ties=rotate", [0, 1, 0, 1])] {
        let policy = named(text);
        let mut state = state(&policy, &[true, true]);
        assert_eq!(serial(&policy, &mut state, &copies(&[0, 1]), 4096, &[50_000, 100], 4), expected, "{text}");
    }
    let policy = named("queue:ties=random");
    let state = state(&policy, &[true, true, true]);
    let mut rng = Rng::new(3, 0);
    let mut counts = [0; 3];
    for _ in 0..3000 {
        counts[policy.choose(&state, &copies(&[0, 1, 2]), &read(4096), 0, rng.word())] += 1;
    }
    assert!(counts.iter().all(|&count| (900..1100).contains(&count)), "{counts:?}");
}

#[test]
fn queue_adaptive_vetoes_the_unhealthy_until_the_healthy_one_is_busier() {
    let policy = named("queue-adaptive:veto_percent=200,overflow=3");
    let mut state = state(&policy, &[true, true]);
    let pair = copies(&[0, 1]);
    for (index, latency) in [(0, 5_000), (1, 1_000)] {
        state.read_sent(&pair, index, &read(4096));
        state.read_done(pair[index], 4096, 0, latency, true);
    }
    let order: Vec<u16> = (0..6).map(|_| send(&policy, &mut state, &pair, &read(4096), 9_000, 0)).collect();
    // Member 0 counts as having 4 more in flight: it is taken when member 1 has 4.
    assert_eq!(order, [1, 1, 1, 1, 0, 1]);
}

#[test]
fn hysteresis_stays_with_the_pid_within_8_or_2_and_prefers_flash_of_a_mixed_pair() {
    for (rotational, stays) in [([true, true], 9), ([false, false], 3)] {
        let policy = named("hysteresis");
        let mut state = state(&policy, &rotational);
        let pair = copies(&[0, 1]);
        let order: Vec<u16> = (0..stays + 1).map(|_| send(&policy, &mut state, &pair, &read(4096), 0, 0)).collect();
        assert_eq!(order.iter().position(|&member| member == 1), Some(stays), "{rotational:?}");
    }
    let policy = named("hysteresis");
    let state = state(&policy, &[true, false]);
    assert_eq!(policy.choose(&state, &copies(&[0, 1]), &read(4096), 0, 0), 1);
}

#[test]
fn md_raid1_stays_with_a_sequential_reader_takes_an_idle_disk_and_else_the_nearest_head() {
    let policy = named("md-raid1");
    let mut state = state(&policy, &[true, true]);
    let sent = at(1 << 20, &[0, 1]);
    state.read_sent(&sent, 1, &read(4096));
    assert_eq!(policy.choose(&state, &at((1 << 20) + 4096, &[0, 1]), &read(4096), 0, 0), 1, "next sector");
    assert_eq!(policy.choose(&state, &at(1 << 30, &[0, 1]), &read(4096), 0, 0), 0, "the idle one");
    state.members[0].head = 1 << 30;
    state.members[1].head = 1 << 20;
    state.read_sent(&at(5 << 30, &[0, 1]), 0, &read(4096));
    assert_eq!(policy.choose(&state, &at(2 << 20, &[0, 1]), &read(4096), 0, 0), 1, "both busy: the nearer head");
    assert_eq!(policy.choose(&state, &at(900 << 20, &[0, 1]), &read(4096), 0, 0), 0);
}

#[test]
fn md_raid1_leaves_a_sequential_flash_member_after_its_optimal_size_when_another_is_idle() {
    let policy = named("md-raid1");
    let mut traits = Traits::new(1, false);
    traits.optimal_io = 64 << 10;
    let mut state = State::new(vec![traits.clone(), Traits { devid: 2, ..traits }], &policy);
    let mut order = Vec::new();
    for index in 0..40u64 {
        let pair = at((1 << 20) + index * 4096, &[0, 1]);
        order.push(send(&policy, &mut state, &pair, &read(4096), 0, 0));
        // The reads before this one are still in flight on member 0 only.
    }
    assert_eq!(order[..16], [0; 16], "64 KiB are sixteen reads of 4 KiB");
    assert_eq!(order[16], 1);
}

#[test]
fn md_raid1_with_any_flash_takes_the_fewest_pending_even_of_disks() {
    let policy = named("md-raid1");
    let mut state = state(&policy, &[true, false]);
    for _ in 0..2 {
        state.read_sent(&at(1 << 30, &[0, 1]), 1, &read(4096));
    }
    state.read_sent(&at(7 << 30, &[0, 1]), 0, &read(4096));
    assert_eq!(policy.choose(&state, &at(3 << 30, &[0, 1]), &read(4096), 0, 0), 0);
}

#[test]
fn md_raid10_prefers_the_least_busy_flash_then_an_idle_disk_then_the_shorter_way() {
    let policy = named("md-raid10");
    let mut mixed = state(&policy, &[true, false, false]);
    mixed.read_sent(&copies(&[0, 1, 2]), 1, &read(4096));
    assert_eq!(policy.choose(&mixed, &copies(&[0, 1, 2]), &read(4096), 0, 0), 2);
    let mut disks = state(&policy, &[true, true]);
    disks.members[0].head = 1 << 30;
    disks.read_sent(&at(1 << 30, &[0, 1]), 0, &read(4096));
    assert_eq!(policy.choose(&disks, &at(2 << 30, &[0, 1]), &read(4096), 0, 0), 1, "an idle disk is at distance 0");
    disks.read_sent(&at(5 << 30, &[0, 1]), 1, &read(4096));
    assert_eq!(policy.choose(&disks, &at(1 << 30, &[0, 1]), &read(4096), 0, 0), 0);
    let far = named("md-raid10:far=1");
    let layout = [Copy { member: 0, address: 9 << 30 }, Copy { member: 1, address: 1 << 30 }];
    assert_eq!(far.choose(&disks, &layout, &read(4096), 0, 0), 1, "far copies: the lower address");
}

#[test]
fn zfs_adds_0_2_or_5_on_disks_and_breaks_ties_by_2_mib_of_offset() {
    let policy = named("zfs");
    let mut state = state(&policy, &[true, true]);
    for member in &mut state.members {
        member.last_end = 1 << 40;
    }
    let of = |state: &State, address: u64| policy.choose(state, &at(address, &[0, 1]), &read(4096), 0, 0);
    assert_eq!([of(&state, 0), of(&state, (2 << 20) - 4096), of(&state, 2 << 20), of(&state, 4 << 20)], [0, 0, 1, 0]);
    // Member 0 reads on: load 4 + 0 against 0 + 5; with one more in flight it loses.
    state.members[0].last_end = 1 << 20;
    state.members[0].reads = 4;
    assert_eq!(of(&state, 1 << 20), 0);
    state.members[0].reads = 6;
    assert_eq!(of(&state, 1 << 20), 1);
    // Within 1 MiB the increment is 5 / 2 = 2.
    state.members[0].reads = 2;
    assert_eq!(of(&state, (1 << 20) + 8192), 0);
    state.members[0].reads = 4;
    assert_eq!(of(&state, (1 << 20) + 8192), 1);
}

#[test]
fn zfs_on_flash_prefers_the_sequential_member_by_one() {
    let policy = named("zfs");
    let mut state = state(&policy, &[false, false]);
    state.members[1].last_end = 1 << 20;
    assert_eq!(policy.choose(&state, &at(1 << 20, &[0, 1]), &read(4096), 0, 0), 1);
    state.members[1].reads = 2;
    assert_eq!(policy.choose(&state, &at(1 << 20, &[0, 1]), &read(4096), 0, 0), 0);
}

#[test]
fn zfs_counts_no_more_reads_of_a_member_than_it_sends_at_once() {
    for (text, reads, taken) in [("zfs", [12, 10], 0), ("zfs", [12, 9], 1), ("zfs:max_active=32", [12, 10], 1)] {
        let policy = named(text);
        let mut state = state(&policy, &[true, true]);
        for (member, reads) in state.members.iter_mut().zip(reads) {
            member.reads = reads;
            member.last_end = 1 << 40;
        }
        assert_eq!(policy.choose(&state, &at(0, &[0, 1]), &read(4096), 0, 0), taken, "{text} {reads:?}");
    }
}

#[test]
fn bcachefs_lets_each_copy_replace_the_one_before_so_that_the_last_of_three_is_read_half_of_the_time() {
    let policy = named("bcachefs");
    let mut state = state(&policy, &[true, true, true]);
    for member in &mut state.members {
        member.ewma = 1_000_000;
    }
    let mut rng = Rng::new(5, 0);
    let mut counts = [0; 3];
    for _ in 0..100_000 {
        counts[policy.choose(&state, &copies(&[0, 1, 2]), &read(4096), 0, rng.word())] += 1;
    }
    for (count, part) in counts.iter().zip([0.25, 0.25, 0.5]) {
        assert!((f64::from(*count) / 100_000.0 - part).abs() < 0.01, "{counts:?}");
    }
}

#[test]
fn bcachefs_reads_from_two_members_in_inverse_proportion_to_their_latency() {
    for (text, slow_part) in [("bcachefs", 1.0 / 4.0), ("bcachefs:square=1", 1.0 / 10.0)] {
        let policy = named(text);
        let mut state = state(&policy, &[true, true]);
        state.members[0].ewma = 3_000_000;
        state.members[1].ewma = 1_000_000;
        let mut rng = Rng::new(5, 0);
        let slow = (0..100_000).filter(|_| policy.choose(&state, &copies(&[0, 1]), &read(4096), 0, rng.word()) == 0);
        let part = slow.count() as f64 / 100_000.0;
        assert!((part - slow_part).abs() < 0.01, "{text}: {part}");
    }
}

#[test]
fn bcachefs_mean_moves_by_a_thirty_second_and_skips_samples_near_it_most_of_the_time() {
    let policy = named("bcachefs");
    let mut state = state(&policy, &[true]);
    let copy = copies(&[0]);
    let mut done = |now: u64, latency: u64| {
        state.read_sent(&copy, 0, &read(4096));
        state.read_done(copy[0], 4096, now - latency, now, true);
        state.members[0].ewma
    };
    assert_eq!(done(3201, 3200), 100);
    assert_eq!(done(6401, 3200), (100 * 31 + 3200) / 32);
    assert_eq!(done(7001, 200), 196, "within 50 %, tick 7001 mod 32 is 25: skipped");
    assert_eq!(done(7040, 200), (196 * 31 + 200) / 32, "tick 7040 is a multiple of 32");
}

#[test]
fn dm_queue_length_takes_the_fewest_and_of_equals_the_longest_unused() {
    let policy = named("queue-length");
    let mut state = state(&policy, &[true, true, true]);
    let order: Vec<u16> = (0..6).map(|_| send(&policy, &mut state, &copies(&[2, 0, 1]), &read(4096), 0, 0)).collect();
    assert_eq!(order, [2, 0, 1, 2, 0, 1]);
}

#[test]
fn dm_service_time_weighs_bytes_in_flight_by_the_operators_weight() {
    let policy = named("service-time");
    let mut traits: Vec<Traits> = (1..3).map(|devid| Traits::new(devid, true)).collect();
    traits[1].weight = 3;
    let mut state = State::new(traits, &policy);
    let order: Vec<u16> = (0..8).map(|_| send(&policy, &mut state, &copies(&[0, 1]), &read(4096), 0, 0)).collect();
    // Loads as (in flight + 1) / weight, equal ones to the heavier: 1/1 against 1/3, 2/3, 3/3, 4/3 ...
    assert_eq!(order, [1, 1, 1, 0, 1, 1, 1, 0]);
    let unweighted = named("service-time");
    let mut state = self::state(&unweighted, &[true, true]);
    let order: Vec<u16> = [1 << 20, 4096, 4096]
        .iter()
        .map(|&length| send(&unweighted, &mut state, &copies(&[0, 1]), &read(length), 0, 0))
        .collect();
    assert_eq!(order, [0, 1, 1], "a large read counts by its bytes");
}

#[test]
fn dm_historical_service_time_does_not_count_queueing_twice() {
    let policy = named("historical-service-time:base=0");
    let mut state = state(&policy, &[true, true]);
    let pair = copies(&[0, 1]);
    for _ in 0..2 {
        state.read_sent(&pair, 0, &read(4096));
    }
    // Both were sent at 0; the second ends 1 ms after the first, so its service took 1 ms, not 2.
    state.read_done(pair[0], 4096, 0, 1_000_000, true);
    state.read_done(pair[0], 4096, 0, 2_000_000, true);
    assert_eq!(state.members[0].service >> 10, 1_000_000);
    assert_eq!(state.members[0].stale_after, 2_000_000 + 2 * 1_000_000);
}

#[test]
fn dm_historical_service_time_weighs_the_past_by_095_to_the_power_of_elapsed_buckets() {
    let weights = super::dm::weights(972);
    assert_eq!(weights[..3], [972, 923, 876]);
    assert_eq!(weights[63], 0);
}

#[test]
fn dm_historical_service_time_probes_an_idle_stale_path_once_and_then_goes_back() {
    let policy = named("historical-service-time");
    let mut state = state(&policy, &[true, true]);
    for (member, service) in state.members.iter_mut().zip([1_000u64, 9_000]) {
        member.service = service << 10;
        member.stale_after = 1_000;
    }
    let pair = copies(&[0, 1]);
    state.members[0].stale_after = 100_000;
    state.members[0].reads = 1;
    assert_eq!(policy.choose(&state, &pair, &read(4096), 900, 0), 0, "2 x 1000 against 1 x 9000");
    assert_eq!(policy.choose(&state, &pair, &read(4096), 5_000, 0), 1, "idle and stale: a probe");
    state.members[1].reads = 1;
    assert_eq!(policy.choose(&state, &pair, &read(4096), 5_000, 0), 0);
}

#[test]
fn shortest_expected_delay_weighs_the_queue_by_the_latency() {
    let policy = named("sed:explore_permille=0");
    let mut state = state(&policy, &[true, true]);
    state.members[0].recent = 1_000;
    state.members[1].recent = 3_000;
    let pair = copies(&[0, 1]);
    let order: Vec<u16> = (0..8).map(|_| send(&policy, &mut state, &pair, &read(4096), 0, 0)).collect();
    assert_eq!(order, [0, 0, 0, 1, 0, 0, 0, 1]);
}

#[test]
fn random_is_even() {
    let mut rng = Rng::new(9, 0);
    let policy = named("random");
    let state = state(&policy, &[true; 4]);
    let mut counts = [0; 4];
    for _ in 0..8000 {
        counts[policy.choose(&state, &copies(&[0, 1, 2, 3]), &read(4096), 0, rng.word())] += 1;
    }
    assert!(counts.iter().all(|&count| (1850..2150).contains(&count)), "{counts:?}");
}

#[test]
fn one_copy_leaves_no_choice_and_a_choice_changes_nothing() {
    for entry in CATALOGUE {
        let policy = named(entry.name);
        let state = state(&policy, &[true, false]);
        assert_eq!(policy.choose(&state, &copies(&[1]), &read(4096), 5, 77), 0);
        let (request, pair) = (Request { pid: 7, ..read(4096) }, copies(&[0, 1]));
        let twice = [policy.choose(&state, &pair, &request, 5, 77), policy.choose(&state, &pair, &request, 5, 77)];
        assert_eq!(twice[0], twice[1], "{}: the same inputs, the same answer", entry.name);
    }
}
