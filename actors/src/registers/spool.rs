//! The numbers of a file that comes in as slowly as it may: their hashes wait on disk, in a file without a name, so that they take no
//! memory until all of them are there.
use super::runs::{Numbers, Runs};
use entities::{Error, Result};
use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, Write},
    path::Path,
};

/// Bytes that are written and read at once.
const BUFFER: usize = 256 * 1024;

/// Hashes and days, in the order in which they came.
pub struct Spool {
    file: BufWriter<File>,
    numbers: usize,
    left: usize,
}

impl Spool {
    /// In that folder, or where this machine keeps such files. Takes no more than so many numbers.
    pub fn new(folder: &Path, most: usize) -> Result<Self> {
        // Nobody else can open it, and whatever ends the process ends it, too.
        let file = tempfile::tempfile_in(folder).or_else(|_| tempfile::tempfile());
        Ok(Spool {
            file: BufWriter::with_capacity(BUFFER, file.map_err(broken)?),
            numbers: 0,
            left: most,
        })
    }

    /// All of them, in memory.
    pub fn sorted(self) -> Result<Runs> {
        let mut file = self.file.into_inner().map_err(|error| broken(error.into_error()))?;
        file.rewind().map_err(broken)?;
        let mut file = BufReader::with_capacity(BUFFER, file);
        let mut runs = Runs::new(self.numbers);
        let (mut hash, mut day) = ([0; 8], [0; 2]);
        for _ in 0..self.numbers {
            file.read_exact(&mut hash).map_err(broken)?;
            file.read_exact(&mut day).map_err(broken)?;
            runs.push(u64::from_be_bytes(hash), u16::from_be_bytes(day));
        }
        Ok(runs)
    }

    fn write(&mut self, hash: u64, day: u16) -> io::Result<()> {
        self.file.write_all(&hash.to_be_bytes())?;
        self.file.write_all(&day.to_be_bytes())
    }
}

impl Numbers for Spool {
    fn add(&mut self, hash: u64, day: u16) -> Result<bool> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(false);
        };
        self.left = left;
        self.write(hash, day).map_err(broken)?;
        self.numbers += 1;
        Ok(true)
    }

    fn is_empty(&self) -> bool {
        self.numbers == 0
    }
}

fn broken(error: io::Error) -> Error {
    Error::Unavailable(format!("a register's numbers cannot be kept on disk: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_on_disk_comes_back_and_no_more_is_taken_than_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path(), 3).unwrap();
        assert!(spool.is_empty());
        let taken: Vec<bool> = [(7, 5), (u64::MAX, 1), (7, 6), (8, 1)]
            .map(|(hash, day)| spool.add(hash, day).unwrap())
            .to_vec();
        assert_eq!(taken, [true, true, true, false]);
        assert!(!spool.is_empty());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it has no name");
        let merged: Vec<(u64, u16)> = spool.sorted().unwrap().merged().collect();
        assert_eq!(merged, [(7, 6), (u64::MAX, 1)]);
    }

    #[test]
    fn a_folder_that_is_not_there_keeps_no_file_from_being_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(&folder.path().join("none"), 1).unwrap();
        assert!(spool.add(7, 5).unwrap());
        assert_eq!(spool.sorted().unwrap().merged().collect::<Vec<_>>(), [(7, 5)]);
    }
}
