//! Things in flight under small numbers, which are used again once a thing is done.

use std::ops::{Index, IndexMut};

/// A number stays valid until it is given back; what it stood for can still be looked at until it is used again.
#[derive(Clone, Debug)]
pub struct Slots<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    #[inline]
    pub fn put(&mut self, one: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = one;
                number
            }
            None => {
                self.all.push(one);
                (self.all.len() - 1) as u32
            }
        }
    }

    #[inline]
    pub fn give_back(&mut self, number: u32) {
        self.free.push(number);
    }

    pub fn len(&self) -> u32 {
        self.all.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Also those that were given back.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.all.iter()
    }
}

impl<T> Index<u32> for Slots<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.all[number as usize]
    }
}

impl<T> IndexMut<u32> for Slots<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.all[number as usize]
    }
}
