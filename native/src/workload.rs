//! What is asked of the array: a closed loop of jobs x iodepth requests, as fio makes them, or an open load that comes at
//! a rate of its own.

use crate::rng::Rng;

#[derive(Clone, Debug)]
pub struct Workload {
    pub random: bool,
    pub length: u32,
    pub iodepth: u32,
    pub jobs: u32,
    /// Percent of the requests that are reads.
    pub read_percent: u32,
    /// Bytes of the array that are used, from its beginning.
    pub size: u64,
    pub seed: u64,
    /// The pid of each job decides what the pid policy does.
    pub pids: Vec<u32>,
    /// Requests per second of all jobs together that come by chance (Poisson), whatever is in flight; 0: a closed loop.
    pub rate: f64,
}

impl Workload {
    pub fn check(&self) -> Result<(), String> {
        if self.iodepth == 0 || self.jobs == 0 || self.pids.len() != self.jobs as usize {
            return Err("iodepth and jobs are at least 1, and each job has a pid".into());
        }
        if u64::from(self.iodepth) * u64::from(self.jobs) > 1 << 16 {
            return Err(format!("{} jobs of iodepth {} are more than 65536 in flight", self.jobs, self.iodepth));
        }
        if self.length == 0 || self.length % 512 != 0 || self.length > 1 << 26 {
            return Err(format!("a block size of {} is not a multiple of 512 up to 64 MiB", self.length));
        }
        if !(0.0..=1e8).contains(&self.rate) {
            return Err(format!("a rate of {} requests a second is not within 0 to 100 million", self.rate));
        }
        if self.read_percent > 100 {
            return Err(format!("{} % of reads", self.read_percent));
        }
        if self.size / u64::from(self.length) < u64::from(self.jobs) {
            return Err(format!("{} bytes hold no block of {} for each job", self.size, self.length));
        }
        Ok(())
    }
}

/// The endless sequence of one job's requests.
#[derive(Clone, Debug)]
pub struct Stream {
    rng: Rng,
    blocks: u64,
    length: u64,
    random: bool,
    read_percent: u64,
    next: u64,
}

impl Stream {
    /// Random offsets are independent (`norandommap`); sequential jobs begin evenly spaced over the size and wrap.
    pub fn new(workload: &Workload, job: u32) -> Self {
        let blocks = workload.size / u64::from(workload.length);
        Stream {
            rng: Rng::new(workload.seed, 0x1000 + u64::from(job)),
            blocks,
            length: u64::from(workload.length),
            random: workload.random,
            read_percent: u64::from(workload.read_percent),
            next: blocks * u64::from(job) / u64::from(workload.jobs),
        }
    }

    /// Offset of the next request, and whether it is a read.
    #[inline]
    pub fn draw(&mut self) -> (u64, bool) {
        let read = self.read_percent == 100 || self.rng.below(100) < self.read_percent;
        let block = if self.random {
            self.rng.below(self.blocks)
        } else {
            let block = self.next;
            self.next = if block + 1 == self.blocks { 0 } else { block + 1 };
            block
        };
        (block * self.length, read)
    }
}

/// When the requests of an open load come, and from which job.
#[derive(Clone, Debug)]
pub struct Arrivals {
    rng: Rng,
    /// Mean time between two, ns.
    gap: f64,
    jobs: u64,
}

impl Arrivals {
    /// None for a closed loop.
    pub fn new(workload: &Workload) -> Option<Self> {
        let rng = Rng::new(workload.seed, 7);
        (workload.rate > 0.0).then(|| Arrivals { rng, gap: 1e9 / workload.rate, jobs: u64::from(workload.jobs) })
    }

    /// ns until the next one: times between are exponential, so that how many come in a time is Poisson.
    pub fn wait(&mut self) -> u64 {
        self.rng.exponential(self.gap)
    }

    /// Each job is a source of its own, and all are equally busy.
    pub fn job(&mut self) -> u32 {
        self.rng.below(self.jobs) as u32
    }
}
