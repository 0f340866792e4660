//! ZFS: `vdev_mirror_load` and `vdev_mirror_preferred_child_randomize` of module/zfs/vdev_mirror.c, OpenZFS 2.2.

use super::{Copy, State};

/// Ties among the least loaded go by the offset in units of 2 MiB.
const TIE_SHIFT: u32 = 21;

/// The least load: queue length and an increment by how far the head has to go.
///
/// The queue length is `vq_active`: what ZFS has sent to the device. It sends at most `max_active` synchronous reads at
/// once (`zfs_vdev_sync_read_max_active`), and as many writes; the rest wait in ZFS and do not count.
pub fn mirror(
    state: &State,
    copies: &[Copy],
    rotating_seek: u64,
    seek_offset: u64,
    flash_seek: u64,
    max_active: u32,
) -> usize {
    let load = |copy: &Copy| {
        let member = &state.members[copy.member as usize];
        let increment = if member.last_end == copy.address {
            0
        } else if !member.traits.rotational {
            flash_seek
        } else if member.last_end.abs_diff(copy.address) < seek_offset {
            rotating_seek / 2
        } else {
            rotating_seek
        };
        u64::from(member.reads.min(max_active) + member.writes.min(max_active)) + increment
    };
    let least = copies.iter().map(load).min().unwrap_or(0);
    let tied = copies.iter().filter(|copy| load(copy) == least).count() as u64;
    // All copies of one offset have one address in a ZFS mirror; elsewhere the first copy's stands for them.
    let wanted = (copies[0].address >> TIE_SHIFT) % tied;
    let mut passed = 0;
    for (index, copy) in copies.iter().enumerate() {
        if load(copy) == least {
            if passed == wanted {
                return index;
            }
            passed += 1;
        }
    }
    0
}
