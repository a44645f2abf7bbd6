//! The erasure of one person: a stored job that finds what is held about a number or an address, and lets each thing go by the way that
//! it always goes: as the API removes a contact, what a message said, and what was said in a call.
//!
//! It keeps no place in any list: what was erased is not found again, so that whatever stops it, it goes on. What is in use at the
//! moment (a call, a message on its way, a list that is being read in) is left until it is not: the job stays open, and the
//! reconcile takes it up again. One worker for each workspace.
mod calls;
mod contacts;
mod kept;
mod messages;
mod proof;

use crate::{attempts::person, deps::Deps};
use entities::{
    Error, Result, boxed,
    contact::By,
    erasure::{self, AllKept, Erased, Model, Status, Wait},
    ids::{ErasureId, TenantId},
    page::Page,
    session,
    values::{Env, Moment},
};
use rules::{barred::Whom, commit::Commit};

/// Erasures of one workspace that are not over.
const MOST_OPEN: u64 = 1_000;
/// Jobs that are read at once.
const JOBS: u64 = 100;
/// Rows of a list that are read at once.
const AT_ONCE: u64 = 100;

/// Who is to be erased, and who wants it.
pub struct New {
    pub id: ErasureId,
    pub whom: Whom,
    pub created_by: String,
}

/// By what a person is told apart once nobody is to know whom a row was about: as the record of attempts has it.
pub fn hash(deps: &Deps, tenant: TenantId, whom: &Whom) -> String {
    let address = match whom {
        Whom::Number(number) => number.as_str(),
        Whom::Email(email) => email,
    };
    person::hash(&person::key(&deps.links), tenant, address)
}

/// Stores the job and starts it. One that is under way for the same person is the answer instead. A live call with the person is an
/// `InvalidState`: nothing is begun.
#[boxed]
pub async fn start(deps: &Deps, owner: (TenantId, Env), new: New) -> Result<Model> {
    let whom_hash = hash(deps, owner.0, &new.whom);
    if let Some(known) = erasure::open_of(&deps.db.read, owner, &whom_hash).await? {
        run(deps, owner.0);
        return Ok(known);
    }
    calls::check_none_live(deps, owner, &new.whom).await?;
    let (phone_number, email) = match new.whom {
        Whom::Number(number) => (Some(number), None),
        Whom::Email(email) => (None, Some(email)),
    };
    let row = Model {
        id: new.id,
        tenant_id: owner.0,
        env: owner.1,
        phone_number,
        email,
        whom_hash,
        status: Status::Queued,
        erased: Erased::default(),
        kept: AllKept::default(),
        waits_for: None,
        error: None,
        created_by: new.created_by,
        version: 1,
        created_at: deps.clock.now(),
        finished_at: None,
    };
    let stored = deps.writer.run(owner.0, move |db| {
        let row = row.clone();
        Box::pin(async move {
            if let Some(known) = erasure::open_of(db, owner, &row.whom_hash).await? {
                return Ok((known, Commit::default()));
            }
            if erasure::count_open(db, owner.0).await? >= MOST_OPEN {
                let why = format!("{MOST_OPEN} erasures are not finished yet: wait until some have ended");
                return Err(Error::PlanLimit(why));
            }
            erasure::save(db, &row).await?;
            Ok((row, Commit::default()))
        })
    });
    let stored = stored.await?;
    run(deps, owner.0);
    Ok(stored)
}

/// Works a workspace's jobs off, in the background.
pub fn run(deps: &Deps, tenant: TenantId) {
    let its = deps.clone();
    let work = async move { work(&its, tenant).await };
    deps.jobs.run(&deps.erasures, tenant, "person's erasure", work);
}

async fn work(deps: &Deps, tenant: TenantId) -> Result<()> {
    let (mut after, mut failure) = (None, None);
    loop {
        let jobs = erasure::open_after(&deps.db.read, tenant, after, JOBS).await?;
        let Some(last) = jobs.last() else { break };
        after = Some(last.id);
        for job in jobs {
            match step(deps, job).await {
                // Another one is not kept from its work by it, and it goes on soon.
                Err(error) if !matches!(error, Error::Stale) => failure = Some(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Erases what can be erased of one person now; ends the job if that was all.
async fn step(deps: &Deps, row: Model) -> Result<()> {
    let whom = match (&row.phone_number, &row.email) {
        (Some(number), None) => Whom::Number(number.clone()),
        (None, Some(email)) => Whom::Email(email.clone()),
        (None, None) | (Some(_), Some(_)) => {
            return Err(Error::Corrupt {
                table: "erasures",
                column: "phone_number",
                id: row.id.to_string(),
            });
        }
    };
    let mut job = Job {
        deps,
        whom,
        row,
        waits: None,
        trouble: None,
        kept_consents: 0,
        kept_attempts: 0,
    };
    if job.row.status == Status::Queued {
        job.row.status = Status::Running;
        job.note().await?;
    }
    // Before anything is looked for: what a list brings that ends meanwhile would be missed.
    job.lists().await?;
    // Then contacts: nobody is dialled, or written to, any more by a campaign.
    job.contacts().await?;
    job.messages().await?;
    job.calls().await?;
    if job.waits.is_some() {
        if job.row.waits_for != job.waits {
            job.row.waits_for = job.waits;
            job.note().await?;
        }
        return Ok(());
    }
    // What proves how the person was treated comes last: the rest is gone by then.
    job.proof().await?;
    job.end().await
}

/// A job that is being worked off.
struct Job<'a> {
    deps: &'a Deps,
    whom: Whom,
    /// As it is stored, but for what was counted since.
    row: Model,
    /// What is in use, and has to be waited for.
    waits: Option<Wait>,
    /// Why something cannot be erased at all.
    trouble: Option<String>,
    /// What the law keeps.
    kept_consents: i64,
    kept_attempts: i64,
}

impl Job<'_> {
    fn owner(&self) -> (TenantId, Env) {
        (self.row.tenant_id, self.row.env)
    }

    /// How contacts are found.
    fn by(&self) -> By {
        match &self.whom {
            Whom::Number(number) => By::Number(number.as_str().to_owned()),
            Whom::Email(email) => By::Email(vec![email.clone()]),
        }
    }

    /// Stores what was counted, and how far it is.
    async fn note(&mut self) -> Result<()> {
        let mut row = self.row.clone();
        row.version += 1;
        let saved = row.clone();
        let noting = self.deps.writer.run(row.tenant_id, move |db| {
            let row = saved.clone();
            Box::pin(async move {
                erasure::save(db, &row).await?;
                Ok(((), Commit::default()))
            })
        });
        noting.await?;
        self.row = row;
        Ok(())
    }

    /// What became of one thing: `true`, it is erased. What is in use waits; what fails for good is told, and keeps nobody from the rest.
    fn judge(&mut self, erased: Result<()>, wait: Wait) -> Result<bool> {
        match erased {
            Ok(()) => Ok(true),
            // Somebody else has just removed it.
            Err(Error::NotFound(_)) => Ok(false),
            Err(Error::InvalidState { .. } | Error::Stale) => {
                self.waits = Some(wait);
                Ok(false)
            }
            Err(error @ (Error::Corrupt { .. } | Error::Internal(_))) => {
                tracing::error!(%error, erasure = %self.row.id, "something of a person cannot be erased");
                let why = "some of it is damaged and could not be erased; the operator finds it in the log";
                self.trouble = Some(why.to_owned());
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Lists that are being read in may name the person: all is looked through once more when they are through.
    async fn lists(&mut self) -> Result<()> {
        let began = self.row.created_at;
        if entities::import::any_running_by(&self.deps.db.read, self.owner(), began).await? {
            self.waits = Some(Wait::Import);
        }
        Ok(())
    }

    /// From here on nobody knows whom it was about.
    async fn end(&mut self) -> Result<()> {
        self.row.kept = self.kept().await?;
        self.row.status = match &self.trouble {
            None => Status::Done,
            Some(_) => Status::Failed,
        };
        self.row.error = self.trouble.take();
        self.row.waits_for = None;
        (self.row.phone_number, self.row.email) = (None, None);
        self.row.finished_at = Some(self.now());
        self.note().await
    }

    fn now(&self) -> Moment {
        self.deps.clock.now()
    }

    /// Others have their turn between two pages.
    async fn rest(&self) {
        self.deps.clock.rest(REST).await;
    }
}

/// After each page.
const REST: std::time::Duration = std::time::Duration::from_millis(10);

fn first_page() -> Page {
    Page {
        limit: AT_ONCE,
        newest_first: false,
        ..Page::default()
    }
}

/// The sessions of one person.
fn sessions_of(whom: &Whom) -> session::Filter {
    match whom {
        Whom::Number(number) => session::Filter {
            phone_number: Some(number.clone()),
            ..session::Filter::default()
        },
        Whom::Email(email) => session::Filter {
            email: vec![email.clone()],
            ..session::Filter::default()
        },
    }
}
