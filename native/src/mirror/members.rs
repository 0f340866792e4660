//! The members as files: how they are opened, how large they are, and whether they hold the same bytes.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use crate::rng::Rng;

/// Bytes compared at a time.
const PIECE: u64 = 1 << 20;

/// Opens a member; the second answer is false when the filesystem knows no O_DIRECT, so that its cache is used.
pub fn open(path: &str, direct: bool, write: bool) -> Result<(File, bool), String> {
    let with = |flags: i32| OpenOptions::new().read(true).write(write).custom_flags(flags | libc::O_NOCTTY).open(path);
    let found = if direct { with(libc::O_DIRECT) } else { with(0) };
    match found {
        Ok(file) => Ok((file, direct)),
        Err(error) if direct && error.raw_os_error() == Some(libc::EINVAL) => {
            with(0).map(|file| (file, false)).map_err(|error| told(path, "cannot be opened", &error))
        }
        Err(error) => Err(told(path, "cannot be opened", &error)),
    }
}

/// Bytes of each member, by seeking to its end (a block device has no length in its status).
pub fn sizes(paths: &[String]) -> Result<Vec<u64>, String> {
    paths
        .iter()
        .map(|path| {
            let (mut file, _) = open(path, false, false)?;
            file.seek(SeekFrom::End(0)).map_err(|error| told(path, "has no size", &error))
        })
        .collect()
}

/// Where two members differ.
pub struct Difference {
    pub path: String,
    pub offset: u64,
}

/// How much was compared.
pub struct Sample {
    pub compared: u64,
    pub difference: Option<Difference>,
}

/// Compares all members with the first: `pieces` random pieces of 1 MiB and the two ends, or everything with 0.
pub fn compare(
    paths: &[String],
    size: u64,
    pieces: u64,
    seed: u64,
    mut go_on: impl FnMut() -> bool,
) -> Result<Sample, String> {
    let files: Vec<File> =
        paths.iter().map(|path| open(path, false, false).map(|(file, _)| file)).collect::<Result<_, _>>()?;
    let count = size.div_ceil(PIECE);
    let mut rng = Rng::new(seed, 7);
    let chosen: Box<dyn Iterator<Item = u64>> = if pieces == 0 || pieces + 2 >= count {
        Box::new(0..count)
    } else {
        let random: Vec<u64> = (0..pieces).map(|_| rng.below(count)).collect();
        Box::new([0, count - 1].into_iter().chain(random))
    };
    let (mut first, mut other) = (vec![0; PIECE as usize], vec![0; PIECE as usize]);
    let mut compared = 0;
    for piece in chosen {
        if !go_on() {
            return Err("stopped while the members were compared".into());
        }
        let offset = piece * PIECE;
        let length = (size - offset).min(PIECE) as usize;
        read(&files[0], &paths[0], &mut first[..length], offset)?;
        for (file, path) in files.iter().zip(paths).skip(1) {
            read(file, path, &mut other[..length], offset)?;
            if let Some(index) = (0..length).find(|&index| first[index] != other[index]) {
                let difference = Some(Difference { path: path.clone(), offset: offset + index as u64 });
                return Ok(Sample { compared, difference });
            }
        }
        compared += length as u64;
    }
    Ok(Sample { compared, difference: None })
}

fn read(file: &File, path: &str, into: &mut [u8], offset: u64) -> Result<(), String> {
    file.read_exact_at(into, offset).map_err(|error| {
        let what = if error.kind() == ErrorKind::UnexpectedEof { "ends" } else { "cannot be read" };
        told(path, &format!("{what} at byte {offset}"), &error)
    })
}

fn told(path: &str, what: &str, error: &Error) -> String {
    format!("{path} {what}: {error}")
}
