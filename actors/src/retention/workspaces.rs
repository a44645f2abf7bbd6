//! As each workspace says for itself: sessions with all that belongs to them, what was said in them, contacts, messages, lists that
//! were read in. The workspaces take turns, a slice each: none waits until another's millions are gone.
use super::{DAY_SECONDS, KEEP_LINKS, before};
use crate::{deps::Deps, slices::Slices};
use entities::{
    Error, Result, boxed, campaign, contact, email_message,
    ids::{CampaignId, EmailId, SessionId, SmsId, TenantId},
    import, message, recording,
    retention::{self, Gone, Retention},
    session, sms_message, transcript,
    values::{Env, Moment},
};
use rules::{commit::Commit, recording::machine::Command};
use std::{collections::HashSet, time::Duration};

/// Rows in one transaction, at most; a session has some of several tables.
const MOST: usize = 500;
/// Slices in one run, of all workspaces together: a backlog is worked off over some runs.
const SLICES: usize = 20_000;
/// Workspaces that are read at once.
const PAGE: u64 = 500;

/// What one workspace lets go in one environment, and how far that is in this run.
struct Job {
    owner: (TenantId, Env),
    before: Moment,
    kind: Kind,
    slices: Slices,
}

enum Kind {
    Sessions {
        after: Option<SessionId>,
    },
    Words {
        after: Option<SessionId>,
        until: Option<SessionId>,
    },
    Contacts {
        after: Option<CampaignId>,
        of: Option<CampaignId>,
    },
    Texts {
        after: Option<SmsId>,
    },
    Emails {
        after: Option<EmailId>,
        kept_until: Moment,
    },
    Imports,
}

#[boxed]
pub async fn prune(deps: &Deps) -> Result<()> {
    let times = deps.clock.times();
    if times.in_doubt {
        return Ok(());
    }
    let mut jobs = jobs(deps, times.earlier()).await?;
    let mut left = SLICES;
    while !jobs.is_empty() && left > 0 {
        let mut unfinished = Vec::with_capacity(jobs.len());
        for mut job in jobs {
            match job.next(deps).await {
                Ok(true) => {
                    left = left.saturating_sub(1);
                    unfinished.push(job);
                }
                Ok(false) => {}
                // One that fails, or is of a workspace that another node has now, keeps nobody else from going on.
                Err(error) => {
                    tracing::warn!(workspace = %job.owner.0, %error, "pruning failed; trying again within the hour")
                }
            }
        }
        jobs = unfinished;
    }
    Ok(())
}

async fn jobs(deps: &Deps, now: Moment) -> Result<Vec<Job>> {
    let (mut jobs, mut after) = (Vec::new(), None);
    loop {
        let page = retention::all_after(&deps.db.read, deps.share(), after, PAGE).await?;
        for row in &page {
            for env in [Env::Live, Env::Test] {
                let silent = row.silent(env);
                let until = match row.transcripts_days {
                    Some(_) => session::first_open(&deps.db.read, (row.tenant_id, env)).await?,
                    None => None,
                };
                let kinds = kinds(&row.settings(), now, silent, until);
                jobs.extend(kinds.into_iter().map(|(before, kind)| Job {
                    owner: (row.tenant_id, env),
                    before,
                    kind,
                    slices: Slices::new(MOST),
                }));
            }
        }
        after = page.last().map(|row| row.tenant_id);
        if (page.len() as u64) < PAGE {
            return Ok(jobs);
        }
    }
}

/// What is to go, and what of it: what is older than that.
fn kinds(
    asked: &Retention,
    now: Moment,
    silent: Option<SessionId>,
    first_open: Option<SessionId>,
) -> Vec<(Moment, Kind)> {
    let before = |days: i32| before(now, Duration::from_secs(u64::from(days.unsigned_abs()) * DAY_SECONDS));
    let mut kinds = Vec::new();
    if let Some(days) = asked.sessions_days {
        kinds.push((before(days.get()), Kind::Sessions { after: None }));
    }
    if let Some(days) = asked.transcripts_days {
        // What is still to be said in one that is open is looked for later: the mark does not go beyond it.
        kinds.push((
            before(days.get()),
            Kind::Words {
                after: silent,
                until: first_open,
            },
        ));
    }
    if let Some(days) = asked.contacts_days {
        kinds.push((before(days.get()), Kind::Contacts { after: None, of: None }));
    }
    if let Some(days) = asked.messages_days {
        let before = before(days.get());
        let kept_until = before.min(super::before(now, KEEP_LINKS));
        kinds.push((before, Kind::Texts { after: None }));
        kinds.push((
            before,
            Kind::Emails {
                after: None,
                kept_until,
            },
        ));
    }
    if let Some(days) = asked.imports_days {
        kinds.push((before(days.get()), Kind::Imports));
    }
    kinds
}

impl Job {
    /// Does the next slice; `false`: there is nothing left.
    async fn next(&mut self, deps: &Deps) -> Result<bool> {
        match self.kind {
            Kind::Sessions { after } => self.sessions(deps, after).await,
            Kind::Words { after, until } => self.words(deps, after, until).await,
            Kind::Contacts { after, of } => self.contacts(deps, after, of).await,
            Kind::Texts { after } => self.texts(deps, after).await,
            Kind::Emails { after, kept_until } => self.emails(deps, after, kept_until).await,
            Kind::Imports => self.imports(deps).await,
        }
    }

    /// The sound goes first; a session of which there may still be some waits for the next run.
    async fn sessions(&mut self, deps: &Deps, after: Option<SessionId>) -> Result<bool> {
        let (owner, before, db) = (self.owner, self.before, &deps.db.read);
        let mut those = session::old(db, owner, before, after, self.slices.rows() as u64).await?;
        let Some(last) = those.last() else { return Ok(false) };
        self.kind = Kind::Sessions { after: Some(last.id) };
        let ids: Vec<SessionId> = those.iter().map(|one| one.id).collect();
        let mut heard = HashSet::new();
        for (session, key) in recording::with_sound(db, &ids).await? {
            heard.insert(session);
            match deps.router.recordings().request(key, Command::Delete).await {
                Ok(_) | Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        those.retain(|one| !heard.contains(&one.id));
        if those.is_empty() {
            return Ok(true);
        }
        let slice = self.slices.write(deps, owner.0, move |db| {
            let those = those.clone();
            Box::pin(async move {
                retention::note(db, owner.0, Gone::Sessions(before)).await?;
                retention::sessions::remove(db, owner, &those).await?;
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
        Ok(true)
    }

    async fn words(&mut self, deps: &Deps, after: Option<SessionId>, until: Option<SessionId>) -> Result<bool> {
        let (owner, db) = (self.owner, &deps.db.read);
        let those = session::old(db, owner, self.before, after, self.slices.rows() as u64).await?;
        let Some(last) = those.last().map(|one| one.id) else {
            return Ok(false);
        };
        self.kind = Kind::Words {
            after: Some(last),
            until,
        };
        let ids: Vec<SessionId> = those.iter().map(|one| one.id).collect();
        let is_passed = until.is_none_or(|open| last < open);
        let slice = self.slices.write(deps, owner.0, move |db| {
            let ids = ids.clone();
            Box::pin(async move {
                transcript::remove(db, &ids).await?;
                if is_passed {
                    retention::note(db, owner.0, Gone::Words(owner.1, last)).await?;
                }
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
        Ok(true)
    }

    async fn contacts(&mut self, deps: &Deps, after: Option<CampaignId>, of: Option<CampaignId>) -> Result<bool> {
        let (owner, before) = (self.owner, self.before);
        let campaign = match of {
            Some(campaign) => campaign,
            None => match campaign::completed_before(&deps.db.read, owner, before, after).await? {
                Some(campaign) => campaign,
                None => return Ok(false),
            },
        };
        // The writer is not asked where nothing is left.
        let mut left = contact::any_of(&deps.db.read, campaign).await?;
        if left {
            let rows = self.slices.rows() as u64;
            let slice = self.slices.write(deps, owner.0, move |db| {
                Box::pin(async move {
                    retention::note(db, owner.0, Gone::Contacts(before)).await?;
                    Ok((contact::remove_some(db, campaign, rows).await?, Commit::default()))
                })
            });
            left = slice.await? == rows;
        }
        self.kind = match left {
            true => Kind::Contacts {
                after,
                of: Some(campaign),
            },
            false => Kind::Contacts {
                after: Some(campaign),
                of: None,
            },
        };
        Ok(true)
    }

    async fn texts(&mut self, deps: &Deps, after: Option<SmsId>) -> Result<bool> {
        let (owner, before, rows) = (self.owner, self.before, self.slices.rows() as u64);
        let ids = message::over::<sms_message::Entity>(&deps.db.read, owner, (before, before), after, rows).await?;
        let Some(last) = ids.last() else { return Ok(false) };
        self.kind = Kind::Texts { after: Some(*last) };
        let slice = self.slices.write(deps, owner.0, move |db| {
            let ids = ids.clone();
            Box::pin(async move {
                retention::note(db, owner.0, Gone::Messages(before)).await?;
                sms_message::prune(db, &ids).await?;
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
        Ok(true)
    }

    async fn emails(&mut self, deps: &Deps, after: Option<EmailId>, kept_until: Moment) -> Result<bool> {
        let (owner, before, rows) = (self.owner, self.before, self.slices.rows() as u64);
        let times = (before, kept_until);
        let ids = message::over::<email_message::Entity>(&deps.db.read, owner, times, after, rows).await?;
        let Some(last) = ids.last() else { return Ok(false) };
        self.kind = Kind::Emails {
            after: Some(*last),
            kept_until,
        };
        let slice = self.slices.write(deps, owner.0, move |db| {
            let ids = ids.clone();
            Box::pin(async move {
                retention::note(db, owner.0, Gone::Messages(before)).await?;
                email_message::prune(db, &ids).await?;
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
        Ok(true)
    }

    async fn imports(&mut self, deps: &Deps) -> Result<bool> {
        let (owner, rows) = (self.owner, self.slices.rows() as u64);
        let ids = import::ended_before(&deps.db.read, owner, self.before, rows).await?;
        if ids.is_empty() {
            return Ok(false);
        }
        let slice = self.slices.write(deps, owner.0, move |db| {
            let ids = ids.clone();
            Box::pin(async move {
                import::remove(db, &ids).await?;
                Ok(((), Commit::default()))
            })
        });
        slice.await?;
        Ok(true)
    }
}
