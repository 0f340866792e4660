//! The ring with its registered files, and the registered memory that requests read into.

use std::fs::File;
use std::os::fd::AsRawFd;

use io_uring::{opcode, types, IoUring};

/// Page-aligned memory cut into buffers of one length; never given back while the kernel may still write to it.
pub struct Buffers {
    start: *mut u8,
    length: usize,
    each: usize,
    pub registered: bool,
}

impl Buffers {
    pub fn new(count: usize, each: usize) -> Result<Self, String> {
        let each = each.next_multiple_of(4096);
        let length = count.checked_mul(each).filter(|length| *length <= 1 << 30);
        let length = length.ok_or_else(|| format!("{count} buffers of {each} bytes are more than 1 GiB"))?;
        // SAFETY: a new private mapping, checked below.
        let start = unsafe {
            let (protect, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), length, protect, flags, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(format!("no memory for {length} bytes of buffers: {}", std::io::Error::last_os_error()));
        }
        // In huge pages a large read is of few segments. One of too many would have to be split, which the kernel does
        // not do without blocking: it would go the long way round by a worker, and be charged twice to an I/O limit.
        // SAFETY: advice about our own mapping; without it, it works as well.
        unsafe { libc::madvise(start, length, libc::MADV_HUGEPAGE) };
        for page in (0..length).step_by(4096) {
            // SAFETY: within the mapping; so that no request is the first to touch its memory.
            unsafe { start.cast::<u8>().add(page).write_volatile(0) };
        }
        Ok(Buffers { start: start.cast(), length, each, registered: false })
    }

    fn at(&self, index: u32) -> *mut u8 {
        assert!((index as usize + 1) * self.each <= self.length);
        // SAFETY: within the mapping, as just checked.
        unsafe { self.start.add(index as usize * self.each) }
    }

    /// Fills all with noise, so that writes are not all zeros.
    pub fn fill(&mut self, mut word: impl FnMut() -> u64) {
        // SAFETY: the mapping is ours alone until the ring sees it.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.start, self.length) };
        for piece in bytes.chunks_exact_mut(8) {
            piece.copy_from_slice(&word().to_le_bytes());
        }
    }

    /// Gives the memory back; only once no request can reach it.
    pub fn free(self) {
        // SAFETY: the mapping was made in `new` and nothing refers to it any more.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

/// A macro, for the crate does not name the trait that both kinds of file have.
macro_rules! entry {
    ($file:expr, $fixed:expr, $memory:expr, $length:expr, $offset:expr, $write:expr) => {
        match ($fixed, $write) {
            (true, false) => opcode::ReadFixed::new($file, $memory, $length, 0).offset($offset).build(),
            (true, true) => opcode::WriteFixed::new($file, $memory, $length, 0).offset($offset).build(),
            (false, false) => opcode::Read::new($file, $memory, $length).offset($offset).build(),
            (false, true) => opcode::Write::new($file, $memory, $length).offset($offset).build(),
        }
    };
}

pub struct Ring {
    ring: IoUring,
    /// Whether files and memory are registered; else each request names them anew.
    pub registered_files: bool,
    descriptors: Vec<i32>,
}

impl Ring {
    pub fn new(entries: u32, files: &[File], buffers: &mut Buffers) -> Result<Self, String> {
        let ring = build(entries)?;
        let descriptors: Vec<i32> = files.iter().map(AsRawFd::as_raw_fd).collect();
        let registered_files = ring.submitter().register_files(&descriptors).is_ok();
        let whole = libc::iovec { iov_base: buffers.start.cast(), iov_len: buffers.length };
        // SAFETY: the mapping outlives the ring: it is freed only when nothing is outstanding, else never.
        buffers.registered = unsafe { ring.submitter().register_buffers(&[whole]) }.is_ok();
        Ok(Ring { ring, registered_files, descriptors })
    }

    /// Queues one read or write of a whole buffer at (member, offset, length); `enter` gives it to the kernel.
    #[inline]
    pub fn push(&mut self, buffers: &Buffers, buffer: u32, place: (u16, u64, u32), write: bool, tag: u64) {
        let (member, offset, length) = place;
        let (memory, fixed) = (buffers.at(buffer), buffers.registered);
        let entry = if self.registered_files {
            entry!(types::Fixed(u32::from(member)), fixed, memory, length, offset, write)
        } else {
            entry!(types::Fd(self.descriptors[member as usize]), fixed, memory, length, offset, write)
        }
        .user_data(tag);
        // SAFETY: file and memory of the entry live until the ring is gone.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            if self.ring.submit().is_err() {
                std::thread::yield_now();
            }
        }
    }

    /// Lets go of files and memory at once: the kernel takes its time with a ring that is only closed, and until then
    /// a filesystem under the members could not be unmounted.
    pub fn release(&mut self) {
        // It waits for what is in flight, so it is called only when nothing is; an error leaves it to the kernel.
        let _ = self.ring.submitter().unregister_files();
        let _ = self.ring.submitter().unregister_buffers();
    }

    /// Hands over what is queued and waits for a completion, at most `timeout` ns.
    #[inline]
    pub fn enter(&mut self, timeout: u64) -> Result<(), String> {
        let wait = types::Timespec::new().sec(timeout / 1_000_000_000).nsec((timeout % 1_000_000_000) as u32);
        let args = types::SubmitArgs::new().timespec(&wait);
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => Ok(()),
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)) =>
            {
                Ok(())
            }
            Err(error) => Err(format!("io_uring_enter: {error}")),
        }
    }

    /// The next completion: its tag and result.
    #[inline]
    pub fn reap(&mut self) -> Option<(u64, i32)> {
        self.ring.completion().next().map(|done| (done.user_data(), done.result()))
    }
}

/// The quickest kind of ring that this kernel has (defer_taskrun since 6.1, coop_taskrun since 5.19).
fn build(entries: u32) -> Result<IoUring, String> {
    let quick = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries);
    let found = quick.or_else(|_| IoUring::builder().setup_coop_taskrun().build(entries));
    found.or_else(|_| IoUring::builder().build(entries)).map_err(|error| match error.raw_os_error() {
        Some(libc::EPERM) => {
            "io_uring is not allowed here (sysctl kernel.io_uring_disabled, or a container's filter)".to_string()
        }
        Some(libc::ENOSYS) => "this kernel has no io_uring".to_string(),
        _ => format!("no io_uring with {entries} entries: {error}"),
    })
}
