//! What proves how the person was treated: consents go where no law keeps them any more; of the record of attempts what names the
//! person goes, and the record stays.
use super::{AT_ONCE, Job, first_page};
use crate::{
    attempts::{
        self,
        exports::{self, Blanked},
    },
    consent,
};
use entities::{
    Error, Result,
    attempt::{self, RecordKind},
    consent as consents,
    ids::AttemptId,
    reassigned,
    register::answer,
    values::Env,
};
use rules::{barred::Whom, commit::Commit, law::record::Hashes};

impl Job<'_> {
    pub(super) async fn proof(&mut self) -> Result<()> {
        self.consents().await?;
        self.answers().await?;
        self.attempts().await
    }

    async fn consents(&mut self) -> Result<()> {
        let (phone_number, email) = match self.whom.clone() {
            Whom::Number(number) => (Some(number), None),
            Whom::Email(email) => (None, Some(email)),
        };
        let filter = consents::Filter {
            phone_number,
            email,
            ..consents::Filter::default()
        };
        let mut page = first_page();
        loop {
            let listed = consents::list(&self.deps.db, self.owner(), filter.clone(), page).await?;
            let before = self.row.erased.consents;
            for row in &listed.rows {
                match consent::delete(self.deps, row.key()).await {
                    Ok(()) => self.row.erased.consents += 1,
                    // The law wants it for some time yet.
                    Err(Error::InUse(_)) => self.kept_consents += 1,
                    Err(Error::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            if self.row.erased.consents > before {
                self.note().await?;
            }
            match listed.rows.last() {
                Some(last) if listed.has_more => page.after = Some(last.id.0),
                Some(_) | None => return Ok(()),
            }
        }
    }

    /// A slice of attempts, and what came of them, is blanked in one transaction with the row that says so.
    async fn attempts(&mut self) -> Result<()> {
        let (owner, hashes) = (self.owner(), [self.row.whom_hash.clone()]);
        let mut after = 0;
        loop {
            let db = &self.deps.db.reports;
            let rows = attempt::of_person(db, owner, &hashes, after, AT_ONCE).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.n;
            let openings = rows.iter().filter(|row| row.kind == RecordKind::Attempt).count();
            self.kept_attempts += i64::try_from(openings).unwrap_or(0);
            let ids: Vec<AttemptId> = rows.iter().map(|row| row.attempt_id).collect();
            let all = attempt::of_attempts(db, owner, &ids).await?;
            for rows in Blanked::of(&all).chunks(attempts::MOST_PLACES) {
                self.blank(rows.to_vec()).await?;
            }
            self.rest().await;
        }
    }

    fn hashes(&self) -> Hashes {
        let hash = Some(self.row.whom_hash.clone());
        match &self.whom {
            Whom::Number(_) => Hashes {
                number: hash,
                email: None,
            },
            Whom::Email(_) => Hashes {
                number: None,
                email: hash,
            },
        }
    }

    async fn blank(&mut self, rows: Vec<Blanked>) -> Result<()> {
        let places: Vec<i64> = rows.iter().map(|row| row.n).collect();
        let (owner, id) = (self.owner(), self.row.id);
        let now = self.now();
        let (hashes, by) = (self.hashes(), self.row.created_by.clone());
        let blanking = self.deps.writer.run(owner.0, move |db| {
            let (rows, places, hashes, by) = (rows.clone(), places.clone(), hashes.clone(), by.clone());
            Box::pin(async move {
                let blanked = attempt::blank(db, owner, &places).await?;
                let mut commit = Commit::default();
                // What holds them in clear goes with them.
                let expired = exports::expire_holding(db, owner, &rows, now).await?;
                if blanked > 0 {
                    let told = attempts::erased(owner, id, hashes, (&places, Some(by)))?;
                    commit.changes.attempt_records.push(told);
                }
                Ok(((blanked, expired), commit))
            })
        });
        let (blanked, expired) = blanking.await?;
        self.row.erased.attempts += i64::try_from(blanked).unwrap_or(0);
        for export in expired {
            self.row.erased.exports += 1;
            // Nobody finds it any more; its files are looked for again within the hour.
            if let Err(error) = exports::discard(self.deps, &export).await {
                tracing::warn!(%error, export = %export.id, "the files of an export are still there");
            }
        }
        self.note().await
    }

    /// That the number was looked up outside, and what was answered.
    async fn answers(&self) -> Result<()> {
        let Whom::Number(number) = &self.whom else {
            return Ok(());
        };
        let (tenant, env) = self.owner();
        // Before the rows go: what is in memory would put them back. With test keys nobody is asked.
        if env == Env::Live {
            self.deps.registers.forget(tenant, number);
        }
        let row = (tenant, env, number.clone());
        let removing = self.deps.writer.upkeep(tenant, move |db| {
            let row = row.clone();
            Box::pin(async move {
                answer::forget(db, (row.0, row.1), &row.2).await?;
                reassigned::prune(db, &[row]).await
            })
        });
        removing.await
    }
}
