//! A member's device: takes I/Os, and says when the next one ends.

use super::empirical::{Empirical, EmpiricalModel};
use super::flash::{Flash, FlashModel};
use super::hdd::{Hdd, HddModel};
use super::throttled::Throttled;
use super::{Job, Ns};
use crate::rng::Rng;

#[derive(Clone, Debug)]
pub enum Model {
    Hdd(HddModel),
    Flash(FlashModel),
    Empirical(Box<EmpiricalModel>),
}

#[derive(Debug)]
pub enum Device {
    Hdd(Box<Hdd>),
    Flash(Flash),
    Empirical(Empirical),
    Throttled(Throttled),
}

impl Device {
    pub fn new(model: &Model) -> Self {
        match model {
            Model::Hdd(model) => Device::Hdd(Box::new(Hdd::new(model))),
            Model::Flash(model) => Device::Flash(Flash::new(model)),
            Model::Empirical(model) if model.slice > 0 => Device::Throttled(Throttled::new(model)),
            Model::Empirical(model) => Device::Empirical(Empirical::new(model)),
        }
    }

    #[inline]
    pub fn submit(&mut self, job: Job, now: Ns, rng: &mut Rng) {
        match self {
            Device::Hdd(device) => device.submit(job, now),
            Device::Flash(device) => device.submit(job, now, rng),
            Device::Empirical(device) => device.submit(job, now, rng),
            Device::Throttled(device) => device.submit(job, now),
        }
    }

    /// When the next I/O ends; `NEVER` when it is idle.
    #[inline]
    pub fn next(&self) -> Ns {
        match self {
            Device::Hdd(device) => device.next(),
            Device::Flash(device) => device.next(),
            Device::Empirical(device) => device.next(),
            Device::Throttled(device) => device.next(),
        }
    }

    /// Ends that I/O, at the time `next` told, and gives its tag.
    #[inline]
    pub fn complete(&mut self, now: Ns, rng: &mut Rng) -> u32 {
        match self {
            Device::Hdd(device) => device.complete(now),
            Device::Flash(device) => device.complete(now, rng),
            Device::Empirical(device) => device.complete(now, rng),
            Device::Throttled(device) => device.complete(),
        }
    }
}
