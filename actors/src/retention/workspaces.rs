//! As each workspace says for itself: sessions with all that belongs to them, what was said in them, contacts, messages, lists that
//! were read in. The workspaces take turns, a slice each: none waits until another's millions are gone.
use super::{DAY_SECONDS, KEEP_LINKS, before};
use crate::{consent::recordings::proves_until, deps::Deps, slices::Slices};
use entities::{
    Error, Result, boxed, campaign,
    connection::Transaction,
    contact, email_message,
    ids::{EmailId, SessionId, SmsId, TenantId},
    import, message,
    message_send::{self, Channel},
    recording,
    retention::{self, Gone},
    session, sms_message, transcript,
    values::{Env, Moment},
};
use futures_util::future::BoxFuture;
use rules::{commit::Commit, recording::machine::Command};
use std::{collections::HashSet, time::Duration};

/// Rows in one transaction, at most; a session has some of several tables.
const MOST: usize = 500;
/// Workspaces that take turns, and what they write in one run together: a backlog is worked off over some runs.
const PAGE: u64 = 100;
const SLICES: usize = 2_000;
/// A session may come a little later than its id says: the id is made when a request arrives, whose repeat may be what succeeds.
const LATE: Duration = Duration::from_secs(26 * 3600);

/// What one workspace lets go in one environment, and how far that is in this run.
struct Job {
    owner: (TenantId, Env),
    /// Of the settings that it goes by.
    version: i32,
    before: Moment,
    kind: Kind,
    slices: Slices,
}

enum Kind {
    Sessions { after: Option<SessionId> },
    Words(Words),
    Contacts,
    Texts { after: Option<SmsId> },
    Emails { after: Option<EmailId>, kept_until: Moment },
    Imports,
}

/// Sessions are looked at once: the mark says up to which. It stands before the first that was not over yet.
#[derive(Clone, Copy)]
struct Words {
    after: Option<SessionId>,
    marked: Option<SessionId>,
    mark: Option<SessionId>,
    is_unbroken: bool,
}

/// What came of a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Wrote,
    /// There was nothing to write, and there may be more behind it.
    Looked,
    Done,
}

#[boxed]
pub async fn prune(deps: &Deps) -> Result<()> {
    let times = deps.clock.times();
    if times.in_doubt {
        return Ok(());
    }
    let mut after = None;
    loop {
        let page = retention::all_after(&deps.db.read, deps.share(), after, PAGE).await?;
        let jobs = page.iter().flat_map(|row| jobs(row, times.earlier())).collect();
        take_turns(deps, jobs).await;
        after = page.last().map(|row| row.tenant_id);
        if (page.len() as u64) < PAGE {
            return Ok(());
        }
    }
}

async fn take_turns(deps: &Deps, mut jobs: Vec<Job>) {
    let mut left = SLICES;
    while !jobs.is_empty() && left > 0 {
        let mut unfinished = Vec::with_capacity(jobs.len());
        for mut job in jobs {
            match job.turn(deps).await {
                Ok(Turn::Done) => {}
                Ok(turn) => {
                    left = left.saturating_sub(usize::from(turn == Turn::Wrote));
                    unfinished.push(job);
                }
                // The settings have changed, or another node has the workspace now: the next run sees.
                Err(Error::Stale) => {}
                Err(error) => {
                    tracing::warn!(workspace = %job.owner.0, %error, "pruning failed; trying again within the hour");
                }
            }
        }
        jobs = unfinished;
    }
}

fn jobs(row: &retention::Model, now: Moment) -> Vec<Job> {
    let asked = row.settings();
    let before = |days: i32| before(now, Duration::from_secs(u64::from(days.unsigned_abs()) * DAY_SECONDS));
    let mut jobs = Vec::new();
    for env in [Env::Live, Env::Test] {
        let mut add = |before: Moment, kind: Kind| {
            jobs.push(Job {
                owner: (row.tenant_id, env),
                version: row.version,
                before,
                kind,
                slices: Slices::new(MOST),
            });
        };
        if let Some(days) = asked.sessions_days {
            add(before(days.get()), Kind::Sessions { after: None });
        }
        if let Some(days) = asked.transcripts_days {
            let marked = row.silent(env);
            let words = Words {
                after: marked,
                marked,
                mark: marked,
                is_unbroken: true,
            };
            add(before(days.get()), Kind::Words(words));
        }
        if let Some(days) = asked.contacts_days {
            add(before(days.get()), Kind::Contacts);
        }
        if let Some(days) = asked.messages_days {
            let before = before(days.get());
            let kept_until = before.min(super::before(now, KEEP_LINKS));
            add(before, Kind::Texts { after: None });
            add(
                before,
                Kind::Emails {
                    after: None,
                    kept_until,
                },
            );
        }
        if let Some(days) = asked.imports_days {
            add(before(days.get()), Kind::Imports);
        }
    }
    jobs
}

impl Job {
    async fn turn(&mut self, deps: &Deps) -> Result<Turn> {
        match self.kind {
            Kind::Sessions { after } => self.sessions(deps, after).await,
            Kind::Words(words) => self.words(deps, words).await,
            Kind::Contacts => self.contacts(deps).await,
            Kind::Texts { after } => self.texts(deps, after).await,
            Kind::Emails { after, kept_until } => self.emails(deps, after, kept_until).await,
            Kind::Imports => self.imports(deps).await,
        }
    }

    /// One transaction, if the workspace still wants it so.
    async fn write<F>(&mut self, deps: &Deps, job: F) -> Result<Turn>
    where
        F: for<'a> Fn(&'a Transaction) -> BoxFuture<'a, Result<()>> + Send + Sync + Clone + 'static,
    {
        let (tenant, version) = (self.owner.0, self.version);
        let slice = self.slices.write(deps, tenant, move |db| {
            let job = job.clone();
            Box::pin(async move {
                retention::still(db, tenant, version).await?;
                job(db).await?;
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
        Ok(Turn::Wrote)
    }

    /// The sound goes first, unless it proves a consent; a session of which there may still be some waits for the next run.
    async fn sessions(&mut self, deps: &Deps, after: Option<SessionId>) -> Result<Turn> {
        let (owner, before, db) = (self.owner, self.before, &deps.db.read);
        let mut those = session::old(db, owner, before, after, self.slices.rows() as u64).await?;
        let Some(last) = those.last() else {
            return Ok(Turn::Done);
        };
        self.kind = Kind::Sessions { after: Some(last.id) };
        let ids: Vec<SessionId> = those.iter().map(|one| one.id).collect();
        let mut heard = HashSet::new();
        for (session, key) in recording::with_sound(db, &ids).await? {
            retention::still(db, owner.0, self.version).await?;
            heard.insert(session);
            if proves_until(deps, key).await?.is_some() {
                continue;
            }
            match deps.router.recordings().request(key, Command::Delete).await {
                Ok(_) | Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        those.retain(|one| !heard.contains(&one.id));
        if those.is_empty() {
            return Ok(Turn::Looked);
        }
        let remove = self.write(deps, move |db| {
            let those = those.clone();
            Box::pin(async move {
                retention::note(db, owner.0, Gone::Sessions(before)).await?;
                retention::sessions::remove(db, owner, &those).await
            })
        });
        remove.await
    }

    async fn words(&mut self, deps: &Deps, mut words: Words) -> Result<Turn> {
        let (owner, db) = (self.owner, &deps.db.read);
        let those = session::made_before(db, owner, self.before, words.after, self.slices.rows() as u64).await?;
        let Some((last, _)) = those.last() else {
            return match words.mark {
                Some(mark) if words.mark != words.marked => self.mark(deps, words, mark).await,
                Some(_) | None => Ok(Turn::Done),
            };
        };
        let surely_whole = SessionId::floor(before(self.before, LATE));
        let mut silent = Vec::new();
        for (id, is_over) in &those {
            words.is_unbroken &= *is_over && *id < surely_whole;
            if words.is_unbroken {
                words.mark = Some(*id);
            }
            if *is_over {
                silent.push(*id);
            }
        }
        words.after = Some(*last);
        self.kind = Kind::Words(words);
        // Most of those behind the mark are silent already: the writer is not asked.
        let kept = transcript::kept_of(db, &silent).await?;
        if kept.is_empty() {
            return Ok(Turn::Looked);
        }
        let remove = self.write(deps, move |db| {
            let kept = kept.clone();
            Box::pin(async move { transcript::remove(db, &kept).await })
        });
        remove.await
    }

    async fn mark(&mut self, deps: &Deps, words: Words, mark: SessionId) -> Result<Turn> {
        let owner = self.owner;
        self.kind = Kind::Words(Words {
            marked: Some(mark),
            ..words
        });
        let note = self.write(deps, move |db| {
            Box::pin(async move { retention::note(db, owner.0, Gone::Words(owner.1, mark)).await })
        });
        note.await
    }

    /// A slice of the first campaign that has any: the next turn asks again.
    async fn contacts(&mut self, deps: &Deps) -> Result<Turn> {
        let (owner, before) = (self.owner, self.before);
        let Some(campaign) = campaign::completed_before(&deps.db.read, owner, before).await? else {
            return Ok(Turn::Done);
        };
        let rows = self.slices.rows() as u64;
        let remove = self.write(deps, move |db| {
            Box::pin(async move {
                retention::note(db, owner.0, Gone::Contacts(before)).await?;
                contact::remove_some(db, campaign, rows).await.map(drop)
            })
        });
        remove.await
    }

    async fn texts(&mut self, deps: &Deps, after: Option<SmsId>) -> Result<Turn> {
        let (owner, before, rows) = (self.owner, self.before, self.slices.rows() as u64);
        let those = message::over::<sms_message::Entity>(&deps.db.read, owner, (before, before), after, rows).await?;
        let Some((last, _)) = those.last() else {
            return Ok(Turn::Done);
        };
        self.kind = Kind::Texts { after: Some(*last) };
        let remove = self.write(deps, move |db| {
            let those = those.clone();
            Box::pin(async move {
                retention::note(db, owner.0, Gone::Messages(before)).await?;
                message_send::remove(db, owner, Channel::Sms, &those).await?;
                let ids: Vec<SmsId> = those.iter().map(|(id, _)| *id).collect();
                sms_message::prune(db, &ids).await
            })
        });
        remove.await
    }

    async fn emails(&mut self, deps: &Deps, after: Option<EmailId>, kept_until: Moment) -> Result<Turn> {
        let (owner, before, rows) = (self.owner, self.before, self.slices.rows() as u64);
        let times = (before, kept_until);
        let those = message::over::<email_message::Entity>(&deps.db.read, owner, times, after, rows).await?;
        let Some((last, _)) = those.last() else {
            return Ok(Turn::Done);
        };
        self.kind = Kind::Emails {
            after: Some(*last),
            kept_until,
        };
        let remove = self.write(deps, move |db| {
            let those = those.clone();
            Box::pin(async move {
                retention::note(db, owner.0, Gone::Messages(before)).await?;
                message_send::remove(db, owner, Channel::Email, &those).await?;
                let ids: Vec<EmailId> = those.iter().map(|(id, _)| *id).collect();
                email_message::prune(db, &ids).await
            })
        });
        remove.await
    }

    async fn imports(&mut self, deps: &Deps) -> Result<Turn> {
        let (owner, rows) = (self.owner, self.slices.rows() as u64);
        let ids = import::ended_before(&deps.db.read, owner, self.before, rows).await?;
        if ids.is_empty() {
            return Ok(Turn::Done);
        }
        let remove = self.write(deps, move |db| {
            let ids = ids.clone();
            Box::pin(async move { import::remove(db, &ids).await })
        });
        remove.await
    }
}
