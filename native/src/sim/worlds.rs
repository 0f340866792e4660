//! Many independent worlds over the cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// `work(index)` for each index below `count` on `threads` threads; results in order of the index.
pub fn each<T: Send>(count: usize, threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            scope.spawn(|| loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    break;
                }
                let found = work(index);
                done.lock().expect("no holder of this lock can panic").push((index, found));
            });
        }
    });
    let mut found = done.into_inner().expect("no holder of this lock can panic");
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, result)| result).collect()
}
