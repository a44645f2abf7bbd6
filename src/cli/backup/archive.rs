//! A backup is a tar archive: the database, the recordings, and last a manifest that says what was written, with its hashes.
use crate::error::CannotStart;
use entities::values::Moment;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    path::{Component, Path, PathBuf},
};

/// Grows with each change that an older version could not read.
pub const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";
pub const DATABASE: &str = "database";
const RECORDINGS: &str = "recordings";
/// A manifest is small: its recordings are counted, not named.
const MANIFEST_LIMIT: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A SQLite file.
    Sqlite,
    /// What `pg_dump --format=custom` writes.
    Postgres,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// The version that wrote it.
    pub callboard: String,
    pub database: Kind,
    /// Before the copy began, or when a recovered database ends: whatever was acknowledged by then is in it.
    pub taken_at: Moment,
    /// What the schema has had.
    pub migrations: Vec<String>,
    /// The key without which nothing in it can be used.
    pub secret_key_id: String,
    /// The database.
    pub bytes: u64,
    pub sha256: String,
    /// `None`: they were left out.
    pub recordings: Option<Recordings>,
}

/// All of them: their names and what is in them, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recordings {
    pub files: u64,
    pub bytes: u64,
    pub sha256: String,
}

/// What passes through is hashed and counted.
struct Hashed<R> {
    inner: R,
    hash: Sha256,
    bytes: u64,
}

impl<R> Hashed<R> {
    fn new(inner: R, hash: Sha256) -> Self {
        Hashed { inner, hash, bytes: 0 }
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

fn hex(hash: Sha256) -> String {
    runtime::keyring::hex(&hash.finalize())
}

pub struct Writer {
    tar: tar::Builder<BufWriter<File>>,
}

impl Writer {
    pub fn new(file: File) -> Self {
        let mut tar = tar::Builder::new(BufWriter::with_capacity(1 << 20, file));
        tar.mode(tar::HeaderMode::Deterministic);
        Writer { tar }
    }

    fn append(&mut self, name: &str, bytes: u64, content: impl Read) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes);
        header.set_mode(0o600);
        self.tar.append_data(&mut header, name, content)
    }

    /// Answers its length and its hash.
    pub fn database(&mut self, file: &Path) -> io::Result<(u64, String)> {
        let file = File::open(file)?;
        let bytes = file.metadata()?.len();
        let mut content = Hashed::new(BufReader::new(file), Sha256::new());
        self.append(DATABASE, bytes, &mut content)?;
        Ok((content.bytes, hex(content.hash)))
    }

    /// All files of that folder. One that is erased meanwhile is left out.
    pub fn recordings(&mut self, folder: &Path) -> io::Result<Recordings> {
        let (mut found, mut hash) = (Recordings::default(), Sha256::new());
        let mut names = Vec::new();
        list(folder, Path::new(""), &mut names)?;
        names.sort();
        for name in names {
            let path = folder.join(&name);
            let file = match File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.map_err(|error| of(&path, error))?,
            };
            let bytes = file.metadata()?.len();
            hash.update(name.as_os_str().as_encoded_bytes());
            // As long as it was said to be, whoever still writes to it.
            let mut content = Hashed::new(BufReader::new(file).take(bytes), hash);
            self.append(&format!("{RECORDINGS}/{}", name.display()), bytes, &mut content)?;
            hash = content.hash;
            found.files += 1;
            found.bytes += content.bytes;
        }
        found.sha256 = hex(hash);
        Ok(found)
    }

    /// The manifest comes last; then all of it is on the disk.
    pub fn finish(mut self, manifest: &Manifest) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(manifest)?;
        self.append(MANIFEST, text.len() as u64, &*text)?;
        let mut file = self.tar.into_inner()?;
        file.flush()?;
        file.get_ref().sync_all()
    }
}

/// The files below `folder`, by their paths in it. What is still being written has a `#` in its name.
fn list(folder: &Path, within: &Path, names: &mut Vec<PathBuf>) -> io::Result<()> {
    let path = folder.join(within);
    let entries = match std::fs::read_dir(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| of(&path, error))?,
    };
    for entry in entries {
        let entry = entry?;
        let name = within.join(entry.file_name());
        // What is at the root of a disk is not ours.
        if name == Path::new("lost+found") {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            list(folder, &name, names)?;
        } else if kind.is_file() && !entry.file_name().as_encoded_bytes().contains(&b'#') {
            names.push(name);
        }
    }
    Ok(())
}

/// An error with the file that it is about.
fn of(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Where the parts of a backup go.
pub struct Target<'a> {
    /// An empty file, and where it is.
    pub database: File,
    pub database_path: &'a Path,
    /// Files that are there already are kept.
    pub recordings: Option<&'a Path>,
}

/// Reads all of it, and answers its manifest if everything is as that says.
pub fn verify(file: &Path) -> Result<Manifest, CannotStart> {
    read(file, None)
}

/// The same, and writes its parts where they belong.
pub fn unpack(file: &Path, into: Target<'_>) -> Result<Manifest, CannotStart> {
    read(file, Some(into))
}

fn read(file: &Path, mut into: Option<Target<'_>>) -> Result<Manifest, CannotStart> {
    let bad = |why: String| CannotStart(format!("{}: {why}", file.display()));
    let broken = |error: io::Error| bad(format!("is not a whole backup: {error}"));
    let opened = File::open(file).map_err(|error| bad(format!("cannot be read: {error}")))?;
    let mut archive = tar::Archive::new(BufReader::with_capacity(1 << 20, opened));
    let (mut database, mut manifest) = (None, None);
    let (mut recordings, mut hash) = (Recordings::default(), Sha256::new());
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.into_owned();
        // Others could be longer than the file that they are in.
        if !entry.header().entry_type().is_file() {
            return Err(bad(format!(
                "has a part that is not a plain file (`{}`)",
                path.display()
            )));
        }
        if path == Path::new(MANIFEST) {
            let mut text = Vec::new();
            entry.take(MANIFEST_LIMIT).read_to_end(&mut text).map_err(broken)?;
            manifest = Some(parse(&text).map_err(bad)?);
        } else if path == Path::new(DATABASE) {
            let mut content = Hashed::new(&mut entry, Sha256::new());
            match &mut into {
                Some(into) => {
                    fill(&mut content, &mut into.database).map_err(|error| cannot_write(into.database_path, &error))?;
                }
                None => io::copy(&mut content, &mut io::sink()).map(drop).map_err(broken)?,
            }
            database = Some((content.bytes, hex(content.hash)));
        } else if let Ok(name) = path.strip_prefix(RECORDINGS) {
            if !name.components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(bad(format!("has a file outside its folders (`{}`)", path.display())));
            }
            hash.update(name.as_os_str().as_encoded_bytes());
            let mut content = Hashed::new(&mut entry, hash);
            match into.as_ref().and_then(|into| into.recordings) {
                Some(folder) => {
                    place(&mut content, &folder.join(name)).map_err(|error| cannot_write(folder, &error))?
                }
                None => io::copy(&mut content, &mut io::sink()).map(drop).map_err(broken)?,
            }
            hash = content.hash;
            recordings.files += 1;
            recordings.bytes += content.bytes;
        } else {
            return Err(bad(format!(
                "has a part that this version does not know (`{}`)",
                path.display()
            )));
        }
    }
    recordings.sha256 = hex(hash);
    let manifest = manifest.ok_or_else(|| bad("is not a whole backup: its manifest is missing".into()))?;
    if database != Some((manifest.bytes, manifest.sha256.clone())) {
        return Err(bad("is damaged: its database is not what was written".into()));
    }
    if manifest.recordings.clone().unwrap_or_else(none) != recordings {
        return Err(bad("is damaged: its recordings are not what was written".into()));
    }
    Ok(manifest)
}

fn none() -> Recordings {
    Recordings {
        sha256: hex(Sha256::new()),
        ..Recordings::default()
    }
}

fn parse(text: &[u8]) -> Result<Manifest, String> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let unreadable = |_| "is not a whole backup: its manifest cannot be read".to_owned();
    let Format { format } = serde_json::from_slice(text).map_err(unreadable)?;
    if format != FORMAT {
        return Err(format!(
            "was written in format {format}, and this version reads {FORMAT}: use a newer version"
        ));
    }
    serde_json::from_slice(text).map_err(unreadable)
}

fn cannot_write(path: &Path, error: &io::Error) -> CannotStart {
    CannotStart(format!("cannot write {}: {error}", path.display()))
}

/// A recording that is there already is the same one: none is ever changed.
fn place(content: &mut impl Read, to: &Path) -> io::Result<()> {
    if to.exists() {
        return io::copy(content, &mut io::sink()).map(drop);
    }
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut partial = to.as_os_str().to_owned();
    partial.push("#");
    let partial = Path::new(&partial);
    // What another restore has left that broke off.
    match std::fs::remove_file(partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(of(partial, error)),
        _ => {}
    }
    write(content, partial).map_err(|error| of(to, error))?;
    std::fs::rename(partial, to)
}

/// Into a new file that its owner alone may read.
fn write(content: &mut impl Read, to: &Path) -> io::Result<()> {
    fill(content, &mut private(to)?)
}

fn fill(content: &mut impl Read, file: &mut File) -> io::Result<()> {
    io::copy(content, file)?;
    file.sync_all()
}

/// A new file, readable by its owner only: whoever reads a backup reads whom everybody called.
pub fn private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(bytes: u64, sha256: String, recordings: Option<Recordings>) -> Manifest {
        Manifest {
            format: FORMAT,
            callboard: "0.1.0".into(),
            database: Kind::Sqlite,
            taken_at: Moment::from_millis(0),
            migrations: vec!["m1".into()],
            secret_key_id: "k".into(),
            bytes,
            sha256,
            recordings,
        }
    }

    /// A folder with a database and two recordings, and the backup of them.
    fn backup(folder: &Path) -> (PathBuf, Manifest) {
        std::fs::write(folder.join("db"), [7; 100_000]).unwrap();
        std::fs::create_dir_all(folder.join("kept/a")).unwrap();
        std::fs::write(folder.join("kept/a/one"), "one").unwrap();
        std::fs::write(folder.join("kept/two"), "two").unwrap();
        std::fs::write(folder.join("kept/three#1"), "half").unwrap();
        let file = folder.join("backup");
        let mut writer = Writer::new(private(&file).unwrap());
        let (bytes, sha256) = writer.database(&folder.join("db")).unwrap();
        let recordings = writer.recordings(&folder.join("kept")).unwrap();
        assert_eq!((recordings.files, recordings.bytes), (2, 6));
        let manifest = manifest(bytes, sha256, Some(recordings));
        writer.finish(&manifest).unwrap();
        (file, manifest)
    }

    #[test]
    fn what_was_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (file, manifest) = backup(folder.path());
        assert_eq!(verify(&file).unwrap(), manifest);
        let (database, recordings) = (folder.path().join("again"), folder.path().join("again-kept"));
        std::fs::create_dir(&recordings).unwrap();
        std::fs::write(recordings.join("two"), "kept").unwrap();
        // Of one that broke off.
        std::fs::create_dir(recordings.join("a")).unwrap();
        std::fs::write(recordings.join("a/one#"), "half").unwrap();
        let into = Target {
            database: private(&database).unwrap(),
            database_path: &database,
            recordings: Some(&recordings),
        };
        assert_eq!(unpack(&file, into).unwrap(), manifest);
        assert!(!recordings.join("a/one#").exists());
        assert_eq!(std::fs::read(database).unwrap(), [7; 100_000]);
        assert_eq!(std::fs::read(recordings.join("a/one")).unwrap(), b"one");
        assert_eq!(std::fs::read(recordings.join("two")).unwrap(), b"kept");
    }

    #[test]
    fn every_byte_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = backup(folder.path());
        let whole = std::fs::read(&file).unwrap();
        let refused = |content: &[u8]| {
            let damaged = folder.path().join("damaged");
            std::fs::write(&damaged, content).unwrap();
            verify(&damaged).unwrap_err().to_string()
        };
        // In the database, in a recording, in a recording's name.
        let place = |wanted: &[u8]| whole.windows(wanted.len()).position(|found| found == wanted).unwrap();
        for at in [50_000, place(b"two\0\0\0"), place(b"recordings/two")] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            let said = refused(&damaged);
            assert!(
                said.contains("is damaged") || said.contains("is not a whole backup"),
                "{said}"
            );
        }
        for length in [0, 400, 60_000, place(b"manifest.json"), whole.len() - 2_000] {
            let said = refused(&whole[..length]);
            assert!(said.contains("is not a whole backup"), "{length}: {said}");
        }
        assert!(refused(b"SQLite format 3\0").contains("is not a whole backup"));
    }

    #[test]
    fn nothing_is_written_outside_its_folders() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hostile");
        let mut tar = tar::Builder::new(File::create(&file).unwrap());
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        let name = b"recordings/../../outside";
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name);
        header.set_cksum();
        tar.append(&header, &b"x"[..]).unwrap();
        tar.finish().unwrap();
        drop(tar);
        let (database, recordings) = (folder.path().join("db"), folder.path().join("kept/deep"));
        let into = Target {
            database: private(&database).unwrap(),
            database_path: &database,
            recordings: Some(&recordings),
        };
        let said = unpack(&file, into).unwrap_err().to_string();
        assert!(said.contains("outside its folders"), "{said}");
        assert!(!folder.path().join("outside").exists());
    }

    #[test]
    fn only_plain_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hostile");
        let mut tar = tar::Builder::new(File::create(&file).unwrap());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, "recordings/x", "/etc/passwd").unwrap();
        tar.finish().unwrap();
        drop(tar);
        let said = verify(&file).unwrap_err().to_string();
        assert!(said.contains("is not a plain file"), "{said}");
    }

    #[test]
    fn a_later_format_says_what_to_do() {
        let said = parse(br#"{ "format": 2, "new": true }"#).unwrap_err();
        assert!(said.contains("use a newer version"), "{said}");
    }
}
