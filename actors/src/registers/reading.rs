//! A file of a register while it comes in: read line by line and hashed. It takes processor time: not on a thread that others wait for.
use super::{
    hashes::Hasher,
    runs::{Chunks, Numbers, Runs},
    spool::Spool,
};
use entities::{
    Error, Result,
    ids::RegisterFileId,
    register::AreaCodes,
    values::{Country, Moment},
};
use rules::registers::{lines::Lines, version::Content};
use runtime::keyring::hex;
use sha2::{Digest, Sha256};

/// Bytes of one file that is uploaded over HTTP.
pub const MAX_FILE: usize = 200 * 1024 * 1024;
/// Bytes of memory that a number takes, its day included.
const BYTES_OF_ONE: usize = 10;

/// Numbers of one file of the operator's: as many as fit into what registers may take of memory.
pub fn most_of_operator(memory_bytes: usize) -> usize {
    memory_bytes / BYTES_OF_ONE
}

/// A file that has not ended.
pub struct Reading<N = Runs> {
    lines: Lines,
    hasher: Hasher,
    numbers: N,
    sha256: Sha256,
    area_codes: AreaCodes,
    most: usize,
}

/// All of a file.
pub struct Read<N = Runs> {
    numbers: N,
    pub content: Content,
}

impl Reading<Runs> {
    /// In memory. `most`: numbers, each as often as it stands there.
    pub fn new(hasher: Hasher, country: Country, fetched_at: Moment, most: usize) -> Self {
        Reading::with(Runs::new(most), hasher, country, fetched_at, most)
    }
}

impl<N: Numbers> Reading<N> {
    /// `numbers`: of which there are none yet, and no more than `most` can come.
    pub fn with(numbers: N, hasher: Hasher, country: Country, fetched_at: Moment, most: usize) -> Self {
        Reading {
            lines: Lines::new(country, fetched_at),
            hasher,
            numbers,
            sha256: Sha256::new(),
            area_codes: AreaCodes::default(),
            most,
        }
    }

    /// Of a file that has failed once nothing more is read.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<()> {
        self.sha256.update(bytes);
        let (numbers, hasher, area_codes) = (&mut self.numbers, &self.hasher, &mut self.area_codes);
        let mut fits = Ok(true);
        self.lines.read(bytes, &mut |number, day| {
            area_codes.note(number);
            if let Ok(true) = fits {
                fits = numbers.add(hasher.hash(number), day);
            }
        })?;
        check_room(fits?, self.most)
    }

    pub fn end(self) -> Result<Read<N>> {
        let Reading {
            lines,
            hasher,
            mut numbers,
            sha256,
            mut area_codes,
            most,
        } = self;
        let mut fits = Ok(true);
        let has_dates = lines.end(&mut |number, day| {
            area_codes.note(number);
            if let Ok(true) = fits {
                fits = numbers.add(hasher.hash(number), day);
            }
        })?;
        check_room(fits?, most)?;
        if numbers.is_empty() {
            // As a register it would let everybody be called.
            return Err(Error::invalid("", "the file holds no number"));
        }
        Ok(Read {
            numbers,
            content: Content {
                sha256: hex(&sha256.finalize()),
                key_check: hasher.check().to_owned(),
                has_dates,
                area_codes,
            },
        })
    }
}

fn check_room(fits: bool, most: usize) -> Result<()> {
    match fits {
        true => Ok(()),
        false => Err(Error::PlanLimit(format!(
            "the file holds more than {most} numbers, and there is no room for more"
        ))),
    }
}

impl Read<Spool> {
    /// Takes memory for all of its numbers.
    pub fn sorted(self) -> Result<Read> {
        Ok(Read {
            numbers: self.numbers.sorted()?,
            content: self.content,
        })
    }
}

impl Read<Runs> {
    pub fn chunks(self, file: RegisterFileId) -> Chunks {
        Chunks::new(self.numbers.merged(), file, self.content.has_dates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str, most: usize) -> Result<Read> {
        let fetched_at = Moment::parse("2026-11-30T00:00:00Z").unwrap();
        let mut reading = Reading::new(Hasher::new(&[1; 32]), Country::US, fetched_at, most);
        for piece in file.as_bytes().chunks(7) {
            reading.feed(piece)?;
        }
        reading.end()
    }

    #[test]
    fn a_file_is_read_to_its_end_and_no_further_than_it_may_be() {
        let file = "2125550123\n2125550124\n212,5550123\n";
        let whole = read(file, 3).unwrap();
        let content = &whole.content;
        assert_eq!(content.sha256, runtime::keyring::sha256_hex(file.as_bytes()));
        assert_eq!((content.has_dates, content.key_check.len()), (false, 16));
        assert_eq!(content.area_codes, AreaCodes::parse("212").unwrap());
        let mut chunks = whole.chunks(uuid::Uuid::nil().into());
        assert_eq!((chunks.take(10).len(), chunks.numbers()), (1, 2), "each number once");
        assert!(matches!(read(file, 2), Err(Error::PlanLimit(_))));
        for (empty, said) in [
            ("", "no number"),
            ("\n\n", "no number"),
            ("phone_number\n", "no number"),
        ] {
            let told = read(empty, 3).err().unwrap().to_string();
            assert!(told.contains(said), "{empty:?}: {told}");
        }
        assert!(matches!(read("2125550123\nhello", 3), Err(Error::Faults(_))));
    }

    #[test]
    fn a_file_whose_numbers_wait_on_disk_is_the_same() {
        let (folder, file) = (tempfile::tempdir().unwrap(), "2125550123\n2125550124\n212,5550123\n");
        let fetched_at = Moment::parse("2026-11-30T00:00:00Z").unwrap();
        let reading = |most| {
            let spool = Spool::new(folder.path(), most).unwrap();
            let mut reading = Reading::with(spool, Hasher::new(&[1; 32]), Country::US, fetched_at, most);
            reading.feed(file.as_bytes()).map(|()| reading)
        };
        let (spooled, at_once) = (reading(3).unwrap().end().unwrap(), read(file, 3).unwrap());
        assert_eq!(format!("{:?}", spooled.content), format!("{:?}", at_once.content));
        let rows = |read: Read| read.chunks(uuid::Uuid::nil().into()).take(10);
        let (spooled, at_once) = (rows(spooled.sorted().unwrap()), rows(at_once));
        assert_eq!((spooled.len(), &spooled[0].hashes), (1, &at_once[0].hashes));
        assert!(matches!(reading(2), Err(Error::PlanLimit(_))));
    }
}
