//! Are exported records as they were written?
use super::{at, each_line, open, text_of};
use crate::{cli::commands::print, error::CannotStart};
use clap::Args;
use entities::compliance_export::ExportFormat;
use rules::law::record::{
    chain::{Broken, Followed, hex},
    line::{Line, MANIFEST_FORM, Manifest, ManifestFile, Signed},
};
use runtime::signing::{ALGORITHM, is_signed};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::{
    io::{BufReader, Read},
    path::{Path, PathBuf},
};

#[derive(Args)]
pub struct Verify {
    /// The files of one export, in their order
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Its signed manifest, as `GET /v1/compliance/exports/{id}/manifest` answers it
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// The key that must have signed it, in base64, as published at `GET /v1/compliance/heads`
    #[arg(long, value_name = "BASE64", requires = "manifest")]
    public_key: Option<String>,
}

impl Verify {
    pub fn run(self, json: bool) -> Result<(), CannotStart> {
        let signed = self
            .manifest
            .as_ref()
            .map(|file| signed(file, self.public_key.as_deref()));
        let signed = signed.transpose()?;
        let manifest = signed.as_ref().map(|(manifest, _)| manifest);
        if let Some(manifest) = manifest {
            same_files(manifest, &self.files)?;
        }
        let is_table = manifest.is_some_and(|manifest| manifest.format == ExportFormat::Csv);
        let mut seen = Seen::default();
        if !is_table {
            for file in &self.files {
                each_line(file, |number, line| {
                    let added = seen.add(line, manifest);
                    added.map_err(|(n, broken)| at(file, number, format!("row {n} {broken}")))
                })?;
            }
            if let Some(manifest) = manifest {
                seen.ends(manifest)?;
            }
        }
        let key = signed.map(|(_, key)| key);
        told(&seen, key.as_deref(), is_table, json);
        Ok(())
    }
}

/// What was read so far.
#[derive(Default)]
struct Seen {
    followed: Option<Followed>,
    rows: u64,
    first_n: i64,
    /// Rows between those that were read are not in the files.
    gaps: u64,
}

impl Seen {
    fn add(&mut self, line: Line, manifest: Option<&Manifest>) -> Result<(), (i64, Broken)> {
        let row = line.row();
        let broken = |broken| (row.n, broken);
        let followed = match &mut self.followed {
            Some(followed) => followed,
            none => {
                self.first_n = row.n;
                none.insert(Followed::from(
                    row.n - 1,
                    before(&row.prev_hash, row.n, manifest).map_err(broken)?,
                ))
            }
        };
        let is_next = row.n == followed.n + 1;
        match manifest.is_some_and(|manifest| manifest.is_whole) {
            true => followed.follow(&row).map_err(broken)?,
            false => followed.follow_picked(&row).map_err(broken)?,
        }
        self.gaps += u64::from(!is_next);
        self.rows += 1;
        Ok(())
    }

    /// Is it all that the manifest says, and does it end where the chain did?
    fn ends(&self, manifest: &Manifest) -> Result<(), CannotStart> {
        if i64::try_from(self.rows) != Ok(manifest.rows) {
            return Err(CannotStart(format!(
                "the manifest says that there are {} rows, and there are {}",
                manifest.rows, self.rows
            )));
        }
        let Some(followed) = &self.followed else {
            return Ok(());
        };
        if manifest.is_whole && followed.n == manifest.head.n && followed.hash != manifest.head.hash {
            return Err(CannotStart(format!(
                "row {} is not where the chain ended when the manifest was made",
                followed.n
            )));
        }
        Ok(())
    }
}

/// What the first row that was read follows, as far as that is known.
fn before(prev_hash: &str, n: i64, manifest: Option<&Manifest>) -> Result<String, Broken> {
    let anchor = manifest.and_then(|manifest| manifest.anchor.as_ref());
    let expected = match anchor {
        _ if n == 1 => Some(""),
        Some(anchor) if anchor.n == n - 1 => Some(anchor.hash.as_str()),
        Some(_) | None => None,
    };
    match expected {
        Some(expected) if expected != prev_hash => Err(Broken::Before),
        Some(_) | None => Ok(prev_hash.to_owned()),
    }
}

/// The manifest, and the key that has signed it.
fn signed(file: &Path, public_key: Option<&str>) -> Result<(Manifest, String), CannotStart> {
    let wrong = |why: String| CannotStart(format!("{}: {why}", file.display()));
    let text = text_of(file)?;
    let signed: Signed = serde_json::from_str(&text).map_err(|error| wrong(format!("is not a manifest: {error}")))?;
    if signed.algorithm != ALGORITHM {
        return Err(wrong(format!(
            "is signed with `{}`, not with {ALGORITHM}",
            signed.algorithm
        )));
    }
    if public_key.is_some_and(|key| key != signed.public_key) {
        return Err(wrong(format!("is signed with another key: {}", signed.public_key)));
    }
    if !is_signed(&signed.public_key, signed.manifest.get().as_bytes(), &signed.signature) {
        return Err(wrong("its signature does not fit: it was changed".to_owned()));
    }
    let manifest: Manifest = serde_json::from_str(signed.manifest.get())
        .map_err(|error| wrong(format!("is not a manifest of an export: {error}")))?;
    if manifest.form != MANIFEST_FORM {
        return Err(wrong(format!(
            "has the form `{}`, which this version does not know",
            manifest.form
        )));
    }
    Ok((manifest, signed.public_key))
}

/// Are the files those that were signed?
fn same_files(manifest: &Manifest, files: &[PathBuf]) -> Result<(), CannotStart> {
    if manifest.files.len() != files.len() {
        return Err(CannotStart(format!(
            "the manifest names {} files, and {} were given",
            manifest.files.len(),
            files.len()
        )));
    }
    for (known, file) in manifest.files.iter().zip(files) {
        same(known, file)?;
    }
    Ok(())
}

fn same(known: &ManifestFile, file: &Path) -> Result<(), CannotStart> {
    let mut reader = BufReader::new(open(file)?);
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 64 * 1024]);
    loop {
        let read = reader.read(&mut buffer);
        let read = read.map_err(|error| CannotStart(format!("{}: {error}", file.display())))?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
    }
    match hex(&hasher.finalize()) == known.sha256 {
        true => Ok(()),
        false => Err(CannotStart(format!(
            "{}: is not file {} of the manifest: its SHA-256 is another",
            file.display(),
            known.part
        ))),
    }
}

fn told(seen: &Seen, key: Option<&str>, is_table: bool, json: bool) {
    let last_n = seen.followed.as_ref().map_or(0, |followed| followed.n);
    if json {
        print(&json!({
            "rows": seen.rows, "first_n": seen.first_n, "last_n": last_n, "gaps": seen.gaps,
            "is_signed": key.is_some(), "public_key": key, "is_table": is_table,
        }));
        return;
    }
    match is_table {
        true => println!("the files are those of the manifest; rows are checked in an export of JSON lines"),
        false if seen.gaps == 0 => println!("{} rows, {} to {last_n}: an unbroken chain", seen.rows, seen.first_n),
        false => println!(
            "{} rows between {} and {last_n}: each is as it was written; {} times rows between them are not in the files",
            seen.rows, seen.first_n, seen.gaps
        ),
    }
    match key {
        Some(key) => println!("the manifest is signed with {key}: compare it with GET /v1/compliance/heads"),
        None => println!("no manifest was given: who has written the files is not known"),
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
