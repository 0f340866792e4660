//! What was done in one direction: counts, latency moments, and a histogram in fio's bins.

/// 29 groups of 64 (FIO_IO_U_PLAT_NR of fio >= 2.99).
pub const BINS: usize = 1856;

/// The fio bin of a latency in ns (`plat_val_to_idx` in fio's stat.c).
#[inline]
pub fn bin(value: u64) -> usize {
    let top = 63 - (value | 1).leading_zeros() as usize;
    if top <= 6 {
        return value as usize;
    }
    let exponent = top - 6;
    (((exponent + 1) << 6) + ((value >> exponent) & 63) as usize).min(BINS - 1)
}

#[derive(Clone, Debug)]
pub struct Tally {
    pub ios: u64,
    pub bytes: u64,
    pub min: u64,
    pub max: u64,
    pub sum: u64,
    pub squares: f64,
    pub bins: Vec<u64>,
}

impl Default for Tally {
    fn default() -> Self {
        Tally { ios: 0, bytes: 0, min: u64::MAX, max: 0, sum: 0, squares: 0.0, bins: vec![0; BINS] }
    }
}

impl Tally {
    #[inline]
    pub fn add(&mut self, latency: u64, length: u32) {
        self.ios += 1;
        self.bytes += u64::from(length);
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
        self.sum += latency;
        self.squares += latency as f64 * latency as f64;
        self.bins[bin(latency)] += 1;
    }

    pub fn mean(&self) -> f64 {
        if self.ios == 0 {
            0.0
        } else {
            self.sum as f64 / self.ios as f64
        }
    }

    pub fn stddev(&self) -> f64 {
        if self.ios < 2 {
            return 0.0;
        }
        let (n, mean) = (self.ios as f64, self.mean());
        ((self.squares - n * mean * mean).max(0.0) / (n - 1.0)).sqrt()
    }

    /// The q quantile in ns, interpolated inside its bin; 0 when empty.
    pub fn quantile(&self, q: f64) -> f64 {
        let rank = q * self.ios as f64;
        let mut below = 0.0;
        for (index, &count) in self.bins.iter().enumerate() {
            if count > 0 && below + count as f64 >= rank {
                let (low, width) = edges(index);
                return low as f64 + width as f64 * (rank - below) / count as f64;
            }
            below += count as f64;
        }
        0.0
    }
}

/// Lower edge and width of a bin, ns.
pub fn edges(index: usize) -> (u64, u64) {
    if index < 128 {
        return (index as u64, 1);
    }
    let exponent = (index >> 6) - 1;
    ((64 + (index as u64 & 63)) << exponent, 1 << exponent)
}
