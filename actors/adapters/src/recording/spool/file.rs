//! A spool as a file: a header, then chunks of about a second, each with its length before it (32 bits, big endian).
//!
//! Nothing is synced: a process that is killed loses what waits in memory, a second at most; a machine that loses its power also
//! what its system has not written yet. Either may leave a torn chunk, and nothing from there on is read.
use super::{
    failure::{Cause, Unrecorded},
    piece::{Record, Side, put_end, put_sound, records},
};
use crate::{
    recording::vault::seal::{Chunks, HEADER, Keys},
    sound::{HEARING, Resampler},
};
use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, BufReader, ErrorKind, Read, Write},
    path::Path,
};

/// Plain bytes after which a chunk is written: a second of both sides.
const CHUNK: usize = 64 * 1024;
/// What stands around a chunk: its length and its tag.
const AROUND: usize = 4 + 16;
/// Bytes of a sealed chunk; a longer one is none of ours.
const LONGEST_CHUNK: usize = 4 * CHUNK;

pub type Result<T, E = String> = std::result::Result<T, E>;

/// Writes a spool.
pub struct Writer {
    file: File,
    chunks: Chunks,
    buffer: Vec<u8>,
    /// From the rate of the agent's voice.
    narrow: Option<(u32, Resampler)>,
}

impl Writer {
    /// A new file, of `HEADER` bytes so far, for nobody else to read; its folder is made too.
    pub fn create(path: &Path, keys: &Keys, name: &str) -> Result<Self, Cause> {
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let (header, chunks) = Chunks::begin(keys, name);
        file.write_all(&header)?;
        Ok(Writer {
            file,
            chunks,
            buffer: Vec::new(),
            narrow: None,
        })
    }

    /// Adds some sound of that many samples a second.
    pub fn add(&mut self, side: Side, at: u64, rate: u32, samples: &[i16]) -> Result<(), Cause> {
        if rate == HEARING {
            put_sound(&mut self.buffer, side, at, samples);
            return Ok(());
        }
        if self.narrow.as_ref().is_none_or(|(known, _)| *known != rate) {
            self.narrow = Some((rate, Resampler::new(rate, HEARING)?));
        }
        if let Some((_, resampler)) = &mut self.narrow {
            put_sound(&mut self.buffer, side, at, &resampler.resample(samples));
        }
        Ok(())
    }

    pub fn end(&mut self, at: u64) {
        put_end(&mut self.buffer, at);
    }

    /// There is enough for a chunk.
    pub fn is_full(&self) -> bool {
        self.buffer.len() >= CHUNK
    }

    /// Writes what waits as a chunk, into so many bytes at most; answers how many it took.
    pub fn flush(&mut self, room: u64) -> Result<u64, Cause> {
        if self.buffer.is_empty() {
            return Ok(0);
        }
        let size = (self.buffer.len() + AROUND) as u64;
        if size > room {
            let (means, why) = (Unrecorded::NoRoom, "recordings_spool_max_mb is reached".to_owned());
            return Err(Cause { means, why });
        }
        let buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer)?;
        Ok(size)
    }

    fn write(&mut self, plain: &[u8]) -> Result<(), Cause> {
        let sealed = self.chunks.seal(plain).map_err(|failure| failure.to_string())?;
        let length = u32::try_from(sealed.len()).map_err(|error| error.to_string())?;
        let chunk = [&length.to_be_bytes()[..], &sealed].concat();
        Ok(self.file.write_all(&chunk)?)
    }
}

/// With all above it; only the service may look into it.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Reads a spool, as far as it is whole.
pub struct Reader {
    file: BufReader<File>,
    chunks: Chunks,
}

impl Reader {
    /// `None`: there is no such file, or it ends in its header.
    pub fn open(path: &Path, keys: &Keys, name: &str) -> Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let mut file = BufReader::with_capacity(CHUNK, file);
        let mut header = [0; HEADER];
        match file.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error.to_string()),
        }
        let chunks = Chunks::of(keys, name, &header).map_err(|failure| failure.to_string())?;
        Ok(Some(Reader { file, chunks }))
    }

    /// The next chunk's records; `None`: there are no more, or what follows is torn.
    pub fn chunk(&mut self) -> Result<Option<Vec<Record>>> {
        Ok(self.next_plain()?.map(|plain| records(&plain)))
    }

    fn next_plain(&mut self) -> Result<Option<Vec<u8>>> {
        let mut length = [0; 4];
        if !self.fill(&mut length)? {
            return Ok(None);
        }
        let length = u32::from_be_bytes(length) as usize;
        if length > LONGEST_CHUNK {
            return Ok(None);
        }
        let mut sealed = vec![0; length];
        match self.fill(&mut sealed)? {
            true => Ok(self.chunks.open(&sealed)),
            false => Ok(None),
        }
    }

    /// `false`: the file ends before.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<bool> {
        match self.file.read_exact(bytes) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Seals a spool anew, with the key that is in force; a torn end is cut off. `false`: there is nothing in it.
pub fn reseal(path: &Path, keys: &Keys, name: &str) -> Result<bool> {
    let Some(mut reader) = Reader::open(path, keys, name)? else {
        return Ok(false);
    };
    let new = path.with_extension(NEW);
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.to_string()),
        _ => {}
    }
    let mut writer = Writer::create(&new, keys, name).map_err(|cause| cause.why)?;
    while let Some(plain) = reader.next_plain()? {
        writer.write(&plain).map_err(|cause| cause.why)?;
    }
    replace(&writer.file, &new, path).map_err(|error| error.to_string())?;
    Ok(true)
}

/// Puts a file in another one's place, for good: without its folder's sync a crash may bring the other one back.
fn replace(file: &File, new: &Path, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    std::fs::rename(new, path)?;
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// The ending of a spool that is being sealed anew.
pub const NEW: &str = "new";
