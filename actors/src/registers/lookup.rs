//! Looking numbers up: what the registers that a rule names say of each.
use super::{
    hashes::{Hasher, Listed, unpack, unpack_days},
    questions::{OfReassigned, OfRegister},
    shelf::{Shelf, Wanted},
};
use entities::{
    Error, Result, boxed,
    connection::Connection,
    ids::TenantId,
    register::{self, Model, Seen, answer, chunk},
    values::{E164, Env},
};
use rules::{law::facts::RegisterFact, registers::day};
use runtime::{bulkhead::Bulkhead, keyring::purpose, link_keys::LinkKeys};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::Semaphore;

/// All registers of this database, as far as somebody has looked into them.
pub struct Registers {
    pub hasher: Hasher,
    shelf: Shelf,
    /// Files that are coming in: each takes room on disk for all of its numbers.
    pub uploads: Bulkhead,
    /// Where that is.
    pub(super) folder: PathBuf,
    /// Files that are sorted and stored: each takes memory for all of its numbers.
    pub(super) turns: Semaphore,
    /// What is asked of the service for reassigned numbers.
    pub questions: OfReassigned,
    /// Those that are asked about each number over an API, by name.
    pub over_api: BTreeMap<String, OfRegister>,
    /// Who is told by e-mail that the operator's registers age.
    pub notify: Option<String>,
    /// It is in the log that the key of some register is gone.
    told: AtomicBool,
}

/// What registers say of numbers.
#[derive(Debug, Default)]
pub struct Look {
    pub facts: BTreeMap<E164, Vec<RegisterFact>>,
    /// What was there; none: nothing was looked for.
    pub seen: Option<Arc<Seen>>,
    /// Those of the names that are asked about each number over an API: without a fact that is an answer nobody is called.
    pub asked: Vec<String>,
}

/// Rows and files that belong together.
struct Current {
    files: Vec<(Model, Arc<Listed>)>,
    /// Also those rows whose files cannot be read.
    seen: Seen,
}

/// Files that come in at once, of a workspace and in all: each may take most of an hour.
const UPLOADS: (usize, usize) = (1, 32);
/// Files that are sorted and stored at once; it takes seconds, and the others wait.
const AT_ONCE: usize = 2;
/// Rows that are read at once: 2 MiB.
const ROWS: u64 = 64;
/// A file that is replaced while it is read is looked for again, so often.
const TRIES: u32 = 3;

impl Registers {
    /// `most_bytes`: of all files in memory. `folder`: where those lie that are coming in.
    pub fn new(
        keys: &LinkKeys,
        most_bytes: usize,
        (questions, over_api): (OfReassigned, BTreeMap<String, OfRegister>),
        notify: Option<String>,
        folder: PathBuf,
    ) -> Self {
        Registers {
            hasher: Hasher::new(&keys.signing(purpose::REGISTERS)),
            shelf: Shelf::new(most_bytes),
            uploads: Bulkhead::new(UPLOADS.0, UPLOADS.1),
            folder,
            turns: Semaphore::new(AT_ONCE),
            questions,
            over_api,
            notify,
            told: AtomicBool::new(false),
        }
    }

    /// What the registers of these names say of each number: those of the workspace, and those of the operator, which serve both
    /// environments; and what those have answered that are asked over an API, with live keys. Of a name that nobody has uploaded there is
    /// no fact, and none of a number whose area code a copy does not cover.
    ///
    /// Where there are two of a name, both are told, and one that lists the number first; then the one that was given out later.
    #[boxed]
    pub async fn look(
        &self,
        db: &Connection,
        owner: (TenantId, Env),
        names: &[&str],
        numbers: &[E164],
    ) -> Result<Look> {
        let mut facts: BTreeMap<E164, Vec<RegisterFact>> =
            numbers.iter().map(|number| (number.clone(), Vec::new())).collect();
        if names.is_empty() || facts.is_empty() {
            return Ok(Look {
                facts,
                ..Look::default()
            });
        }
        let Current { files, seen } = self.current(db, owner, names).await?;
        for (number, of_number) in &mut facts {
            let hash = self.hasher.hash(number.as_str());
            let covering = files.iter().filter(|(row, _)| row.covers(number.as_str()));
            of_number.extend(covering.map(|(row, listed)| fact(row, listed.find(hash))));
        }
        let asked = self.asked(owner.1, names);
        if !asked.is_empty() {
            for row in answer::of_numbers(db, owner, &asked, numbers).await? {
                facts.entry(row.phone_number.clone()).or_default().push(answered(row));
            }
        }
        for of_number in facts.values_mut() {
            of_number.sort_by(|one, other| {
                let order = one.name.cmp(&other.name);
                let order = order.then(other.is_listed.cmp(&one.is_listed));
                order.then(other.fetched_at.cmp(&one.fetched_at))
            });
        }
        Ok(Look {
            facts,
            seen: Some(Arc::new(seen)),
            asked: asked.into_iter().map(str::to_owned).collect(),
        })
    }

    /// Those that are asked over an API. With test keys nobody outside is asked: there copies are all that counts.
    fn asked<'a>(&self, env: Env, names: &[&'a str]) -> Vec<&'a str> {
        let names = names.iter().copied().filter(|_| env == Env::Live);
        names.filter(|name| self.over_api.contains_key(*name)).collect()
    }

    async fn current(&self, db: &Connection, owner: (TenantId, Env), names: &[&str]) -> Result<Current> {
        let mut tries = 0;
        loop {
            tries += 1;
            let rows = register::of_names(db, owner, names).await?;
            let seen = Seen::of(owner, names, &rows);
            match self.files(db, rows).await {
                // A file was replaced, and what it held was removed, in the middle of this.
                Err(Error::Stale) if tries < TRIES => {}
                done => return done.map(|files| Current { files, seen }),
            }
        }
    }

    async fn files(&self, db: &Connection, rows: Vec<Model>) -> Result<Vec<(Model, Arc<Listed>)>> {
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            if row.key_check != self.hasher.check() {
                // Nobody would be found in it, and everybody be called.
                if !self.told.swap(true, Ordering::SeqCst) {
                    tracing::error!(
                        register = row.name,
                        id = %row.id,
                        "a register was hashed with a key that this database does not have: it counts as missing until it is uploaded again"
                    );
                }
                continue;
            }
            let listed = self.shelf.get(wanted(&row), || load(db, &row)).await?;
            found.push((row, listed));
        }
        Ok(found)
    }

    /// Nobody outside is asked about that number any more, nor is it written down what was answered of it.
    pub fn forget(&self, tenant: TenantId, number: &E164) {
        self.questions.forget(tenant, number);
        for register in self.over_api.values() {
            register.forget(tenant, number);
        }
    }

    /// Bytes of all files in memory.
    pub fn bytes(&self) -> usize {
        self.shelf.bytes()
    }
}

fn wanted(row: &Model) -> Wanted {
    let of_each = size_of::<u64>() + if row.has_dates { size_of::<u16>() } else { 0 };
    Wanted {
        register: row.id,
        file: row.file_id,
        workspace: (!row.is_operators()).then_some(row.tenant_id),
        bytes: usize::try_from(row.numbers).unwrap_or(0).saturating_mul(of_each),
    }
}

fn fact(row: &Model, found: Option<u16>) -> RegisterFact {
    RegisterFact {
        id: row.id,
        name: row.name.clone(),
        version: row.version,
        fetched_at: row.fetched_at,
        is_listed: found.is_some(),
        listed_on: found.and_then(day::date),
        asked_at: None,
    }
}

/// The same of what a register has answered over its API.
fn answered(row: answer::Model) -> RegisterFact {
    let day = row.listed_on.and_then(|day| u16::try_from(day).ok());
    RegisterFact {
        id: row.id,
        name: row.name,
        version: 1,
        fetched_at: row.as_of,
        is_listed: row.is_listed,
        listed_on: day.and_then(day::date),
        asked_at: Some(row.asked_at),
    }
}

/// All of a file; [`Error::Stale`]: some of it is not there.
async fn load(db: &Connection, row: &Model) -> Result<Listed> {
    let damaged = |column: &'static str| Error::Corrupt {
        table: "register_chunks",
        column,
        id: row.file_id.to_string(),
    };
    let numbers = usize::try_from(row.numbers).unwrap_or(0);
    let (mut hashes, mut days, mut after) = (Vec::with_capacity(numbers), Vec::new(), None);
    if row.has_dates {
        days.reserve_exact(numbers);
    }
    loop {
        let chunks = chunk::behind(db, row.file_id, after, ROWS).await?;
        for one in &chunks {
            if !unpack(&one.hashes, &mut hashes) {
                return Err(damaged("hashes"));
            }
            let good = one.days.as_ref().is_none_or(|bytes| unpack_days(bytes, &mut days));
            if !good || one.days.is_some() != row.has_dates {
                return Err(damaged("days"));
            }
        }
        after = chunks.last().map(|one| one.n);
        if (chunks.len() as u64) < ROWS {
            break;
        }
    }
    if hashes.len() != numbers {
        return Err(Error::Stale);
    }
    Listed::of(hashes, days).ok_or_else(|| damaged("hashes"))
}
