//! Who has written exported files: a manifest that is signed says which they are.
use super::{open, text_of};
use crate::error::CannotStart;
use clap::Args;
use rules::{
    digest::hex,
    law::record::line::{MANIFEST_FORM, Manifest, ManifestFile, Signed},
};
use runtime::signing::{ALGORITHM, is_signed};
use sha2::{Digest, Sha256};
use std::{
    io::{BufReader, Read},
    path::{Path, PathBuf},
};

#[derive(Args, Default)]
pub struct Origin {
    /// The signed manifest of the export, as `GET /v1/compliance/exports/{id}/manifest` answers it
    #[arg(long, value_name = "FILE")]
    pub(super) manifest: Option<PathBuf>,
    /// The key that must have signed it, in base64, as published at `GET /v1/compliance/heads`
    #[arg(long, value_name = "BASE64")]
    pub(super) public_key: Option<String>,
}

impl Origin {
    /// The manifest, and the key that has signed it. Errors where these are not the files that it names, in their order.
    pub(super) fn checked(&self, files: &[PathBuf]) -> Result<Option<(Manifest, String)>, CannotStart> {
        let Some(file) = &self.manifest else { return Ok(None) };
        let (manifest, key) = signed(file, self.public_key.as_deref())?;
        same_files(&manifest, files)?;
        Ok(Some((manifest, key)))
    }
}

fn signed(file: &Path, public_key: Option<&str>) -> Result<(Manifest, String), CannotStart> {
    let wrong = |why: String| CannotStart(format!("{}: {why}", file.display()));
    let text = text_of(file)?;
    let signed: Signed =
        serde_json::from_str(&text).map_err(|_| wrong("is not the signed manifest of an export".to_owned()))?;
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
        .map_err(|_| wrong("is signed, and is not the manifest of an export".to_owned()))?;
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
