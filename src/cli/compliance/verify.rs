//! Are exported records as they were written?
use super::{at, each_line, heads::Heads, origin::Origin};
use crate::{cli::commands::print, error::CannotStart};
use clap::Args;
use entities::{
    attempt::{Model, RecordKind},
    compliance_export::ExportFormat,
};
use rules::law::record::{
    ErasureBody,
    chain::{Broken, Followed},
    line::{Line, Manifest},
};
use serde_json::json;
use std::{collections::BTreeSet, path::PathBuf};

#[derive(Args)]
pub struct Verify {
    /// The files of one export, in their order
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    origin: Origin,
    /// What `GET /v1/compliance/heads` has answered, as you have kept it: a record that was made anew does not fit
    #[arg(long, value_name = "FILE")]
    heads: Vec<PathBuf>,
}

impl Verify {
    pub fn run(self, json: bool) -> Result<(), CannotStart> {
        let key = self.origin.public_key.as_deref();
        if key.is_some() && self.origin.manifest.is_none() && self.heads.is_empty() {
            return Err(CannotStart(
                "--public-key: give what it has signed, with --manifest or --heads".into(),
            ));
        }
        let signed = self.origin.checked(&self.files)?;
        let manifest = signed.as_ref().map(|(manifest, _)| manifest);
        let is_table = manifest.is_some_and(|manifest| manifest.format == ExportFormat::Csv);
        if is_table && !self.heads.is_empty() {
            return Err(CannotStart(
                "--heads: rows are compared with them in an export of JSON lines".into(),
            ));
        }
        let mut seen = Seen {
            heads: Heads::read(&self.heads, key)?,
            ..Seen::default()
        };
        if !is_table {
            for file in &self.files {
                each_line(file, |number, line| {
                    let added = seen.add(line, manifest);
                    added.map_err(|why| at(file, number, why))
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
    heads: Heads,
    /// What named a person there is gone.
    blanked: BTreeSet<i64>,
    /// Places that an erasure names.
    erased: BTreeSet<i64>,
}

impl Seen {
    fn add(&mut self, line: Line, manifest: Option<&Manifest>) -> Result<(), String> {
        let row = line.row();
        if self.followed.is_none() {
            self.heads.are_of(row.owner())?;
        }
        let followed = self.follow(&row, manifest);
        followed.map_err(|broken| format!("row {} {broken}", row.n))?;
        self.heads.meet(&row)?;
        self.note_erasure(&row)
    }

    fn follow(&mut self, row: &Model, manifest: Option<&Manifest>) -> Result<(), Broken> {
        let followed = match &mut self.followed {
            Some(followed) => followed,
            none => {
                self.first_n = row.n;
                none.insert(Followed::from(row.n - 1, before(&row.prev_hash, row.n, manifest)?))
            }
        };
        let is_next = row.n == followed.n + 1;
        match manifest.is_some_and(|manifest| manifest.is_whole) {
            true => followed.follow(row)?,
            false => followed.follow_picked(row)?,
        }
        self.gaps += u64::from(!is_next);
        self.rows += 1;
        Ok(())
    }

    fn note_erasure(&mut self, row: &Model) -> Result<(), String> {
        if row.is_blanked() {
            self.blanked.insert(row.n);
        }
        if row.kind == RecordKind::Erasure {
            let body: ErasureBody =
                serde_json::from_str(&row.body).map_err(|_| format!("row {} does not say what was erased", row.n))?;
            self.erased.extend(body.places);
        }
        Ok(())
    }

    /// Blanked, and by no erasure that is in the files.
    fn unexplained(&self) -> Vec<i64> {
        self.blanked.difference(&self.erased).copied().collect()
    }

    /// Is it all that the manifest says, and does it end where the chain did?
    fn ends(&self, manifest: &Manifest) -> Result<(), CannotStart> {
        if i64::try_from(self.rows) != Ok(manifest.rows) {
            return Err(CannotStart(format!(
                "the manifest says that there are {} rows, and there are {}",
                manifest.rows, self.rows
            )));
        }
        self.heads.end_by(manifest)?;
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

/// Places that are told of those that nothing explains.
const MOST_TOLD: usize = 100;

fn told(seen: &Seen, key: Option<&str>, is_table: bool, json: bool) {
    let last_n = seen.followed.as_ref().map_or(0, |followed| followed.n);
    let mut unexplained = seen.unexplained();
    let blanked = unexplained.len();
    unexplained.truncate(MOST_TOLD);
    if json {
        print(&json!({
            "rows": seen.rows, "first_n": seen.first_n, "last_n": last_n, "gaps": seen.gaps,
            "is_signed": key.is_some(), "public_key": key, "is_table": is_table,
            "heads": seen.heads.count(), "heads_met": seen.heads.met,
            "blanked": seen.blanked.len(), "blanked_without_erasure": blanked, "blanked_places": unexplained,
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
    if blanked > 0 {
        println!(
            "{blanked} rows are blanked, and no erasure in these files names them, the first {unexplained:?}: look for it in a later export, or one \
             of everything"
        );
    }
    match (seen.heads.met, seen.heads.count()) {
        (_, 0) => println!("no heads were given: whoever has the key could have made the record anew"),
        (met, heads) => println!("{met} of {heads} heads are of rows in these files, and fit"),
    }
    match key {
        Some(key) => println!("the manifest is signed with {key}: compare it with GET /v1/compliance/heads"),
        None => println!("no manifest was given: who has written the files is not known"),
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
