//! Where the copies of an offset lie: whole mirrors, or chunks on random members as btrfs has them.

use crate::policy::Copy;
use crate::rng::Rng;

/// A stripe of raid10, bytes; btrfs cuts bios there (BTRFS_STRIPE_LEN).
const STRIPE: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All members hold all bytes at the same addresses.
    Mirror,
    /// Chunks on 2, 3 or 4 members each: btrfs raid1, raid1c3, raid1c4.
    Raid1 { copies: usize },
    /// Chunks of 64 KiB stripes over this many pairs.
    Raid10 { pairs: usize },
}

#[derive(Clone, Debug)]
pub struct Layout {
    /// log2 of the chunk's bytes of data.
    shift: u32,
    /// Copies of one offset.
    pub copies: usize,
    /// Columns of a chunk, `copies` members each; 1 unless raid10.
    columns: usize,
    /// Chunk by chunk, column by column.
    places: Vec<Copy>,
    pub size: u64,
}

impl Layout {
    /// `chunks` of `chunk` bytes (a power of two) at random free places of random members of these capacities.
    pub fn new(kind: Kind, capacities: &[u64], chunks: usize, chunk: u64, rng: &mut Rng) -> Result<Self, String> {
        if !chunk.is_power_of_two() || chunk < STRIPE {
            return Err(format!("a chunk of {chunk} bytes is no power of two of at least 64 KiB"));
        }
        let members = capacities.len();
        if kind == Kind::Mirror {
            let size = capacities.iter().copied().min().unwrap_or(0);
            let places = (0..members).map(|member| Copy { member: member as u16, address: 0 }).collect();
            return Ok(Layout { shift: 63, copies: members, columns: 1, places, size });
        }
        let (copies, columns) = match kind {
            Kind::Raid10 { pairs } => (2, pairs),
            Kind::Raid1 { copies } => (copies, 1),
            Kind::Mirror => unreachable!(),
        };
        let width = copies * columns;
        if width > members || width == 0 {
            return Err(format!("{width} members are needed for a chunk, there are {members}"));
        }
        let mut free: Vec<Vec<u64>> = capacities.iter().map(|size| (0..size / chunk).collect()).collect();
        let mut places = Vec::with_capacity(chunks * width);
        for _ in 0..chunks {
            let mut open: Vec<usize> = (0..members).filter(|&member| !free[member].is_empty()).collect();
            if open.len() < width {
                return Err(format!("the members are too small for {chunks} chunks"));
            }
            for _ in 0..width {
                let member = open.swap_remove(rng.below(open.len() as u64) as usize);
                let slot = rng.below(free[member].len() as u64) as usize;
                let address = free[member].swap_remove(slot) * chunk;
                places.push(Copy { member: member as u16, address });
            }
        }
        Ok(Layout { shift: chunk.trailing_zeros(), copies, columns, places, size: chunks as u64 * chunk })
    }

    /// Puts the copies of `offset` into `found`, in stripe order, and says how many bytes from there lie together.
    #[inline]
    pub fn locate(&self, offset: u64, length: u32, found: &mut Vec<Copy>) -> u32 {
        found.clear();
        let chunk = (offset >> self.shift) as usize;
        let inside = offset & ((1 << self.shift) - 1);
        let (column, address, together) = if self.columns == 1 {
            (0, inside, (1u64 << self.shift) - inside)
        } else {
            let (stripe, rest) = (inside / STRIPE, inside % STRIPE);
            let columns = self.columns as u64;
            ((stripe % columns) as usize, stripe / columns * STRIPE + rest, STRIPE - rest)
        };
        let first = (chunk * self.columns + column) * self.copies;
        for place in &self.places[first..first + self.copies] {
            found.push(Copy { member: place.member, address: place.address + address });
        }
        u64::from(length).min(together) as u32
    }
}
