//! `callboard compliance`: what was exported of the record of attempts is checked, without a server and without its database.
mod heads;
mod origin;
mod prove;
mod verify;

use crate::error::CannotStart;
use clap::Subcommand;
use rules::law::record::line::Line;
use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

#[derive(Subcommand)]
pub enum Compliance {
    /// Check that exported records are as they were written: each hash, the chain, the signature of the manifest, and the
    /// heads that were published
    ///
    /// Needs nothing but the files. It says which line is wrong, and fails.
    Verify(verify::Verify),
    /// Ask the law once more about each exported attempt, and compare what it says with what was recorded
    ///
    /// From the record and the law packs in this program alone. It names the first difference, and fails.
    Prove(prove::Prove),
}

impl Compliance {
    pub fn run(self, json: bool) -> Result<(), CannotStart> {
        match self {
            Compliance::Verify(verify) => verify.run(json),
            Compliance::Prove(prove) => prove.run(json),
        }
    }
}

/// A line of an export is never longer; a file with one that is was not made by us.
const LONGEST: u64 = 4 * 1024 * 1024;

/// Where something is wrong.
fn at(file: &Path, line: usize, why: impl std::fmt::Display) -> CannotStart {
    CannotStart(format!("{}:{line}: {why}", file.display()))
}

fn open(file: &Path) -> Result<File, CannotStart> {
    File::open(file).map_err(|error| CannotStart(format!("{}: {error}", file.display())))
}

/// Hands each line of a file of JSON lines to `with`, with its number from 1.
fn each_line(file: &Path, mut with: impl FnMut(usize, Line) -> Result<(), CannotStart>) -> Result<(), CannotStart> {
    let mut reader = BufReader::new(open(file)?);
    let mut text = Vec::new();
    for number in 1.. {
        text.clear();
        let read = reader.by_ref().take(LONGEST).read_until(b'\n', &mut text);
        let read = read.map_err(|error| at(file, number, error))?;
        if read == 0 {
            break;
        }
        if read as u64 == LONGEST {
            return Err(at(file, number, "is longer than any record"));
        }
        let line =
            serde_json::from_slice(&text).map_err(|_| at(file, number, "is not a record as an export writes it"))?;
        with(number, line)?;
    }
    Ok(())
}

fn text_of(file: &Path) -> Result<String, CannotStart> {
    std::fs::read_to_string(file).map_err(|error| CannotStart(format!("{}: {error}", file.display())))
}
