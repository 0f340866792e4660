//! md: `choose_best_rdev` of drivers/md/raid1.c and `read_balance` of drivers/md/raid10.c, both 6.12.

use super::{smallest, Copy, Member, State};

fn of<'a>(state: &'a State, copy: &Copy) -> &'a Member {
    &state.members[copy.member as usize]
}

/// Sequential reads stay; else the fewest pending where a member is flash or idle; else the nearest head.
/// Ties: the first member.
pub fn raid1(state: &State, copies: &[Copy]) -> usize {
    let mut sequential = None;
    let mut fewest = (u32::MAX, 0);
    let mut nearest = (u64::MAX, 0);
    let mut flash = false;
    for (index, copy) in copies.iter().enumerate() {
        let member = of(state, copy);
        flash |= !member.traits.rotational;
        let mut pending = member.pending();
        let distance = copy.address.abs_diff(member.head);
        if member.next_read == copy.address || member.head == copy.address {
            if !past_optimal(member) {
                return index;
            }
            // Another idle member is preferred then, and this one is what remains.
            pending += 1;
            sequential = Some(index);
        }
        if pending < fewest.0 {
            fewest = (pending, index);
        }
        if distance < nearest.0 {
            nearest = (distance, index);
        }
    }
    match sequential {
        Some(index) if fewest.0 != 0 => index,
        _ if flash || fewest.0 == 0 => fewest.1,
        _ => nearest.1,
    }
}

/// Whether a flash member has read sequentially for longer than its optimal I/O size (`should_choose_next`).
fn past_optimal(member: &Member) -> bool {
    let optimal = u64::from(member.traits.optimal_io);
    !member.traits.rotational
        && optimal > 0
        && member.run_start != u64::MAX
        && member.next_read > optimal
        && member.next_read - optimal >= member.run_start
}

/// With flash among the copies its fewest pending; else the shortest way of the head, 0 for an idle member where
/// copies are near; far copies: the lowest address. Ties: the first copy.
pub fn raid10(state: &State, copies: &[Copy], far: bool) -> usize {
    let flash = copies.iter().enumerate().filter(|(_, copy)| !of(state, copy).traits.rotational);
    if let Some((index, _)) = flash.min_by_key(|(_, copy)| of(state, copy).pending()) {
        return index;
    }
    smallest(state, copies, |member, copy| {
        if far {
            copy.address
        } else if member.pending() == 0 {
            0
        } else {
            copy.address.abs_diff(member.head)
        }
    })
}
