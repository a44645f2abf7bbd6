//! Calls, and talks in rooms. Those that wait are given up, those that are live are waited for, and of those that have ended what was
//! said goes with its sound.
use super::{Job, first_page, sessions_of};
use crate::{deps::Deps, room, session};
use entities::{
    Error, Result, boxed,
    erasure::Wait,
    ids::{RoomId, TenantId, TenantScoped},
    room as rooms,
    session::{self as store, Filter, Model, Phase, Status},
    values::Env,
};
use rules::{barred::Whom, room::machine::Command as RoomCommand, session::command::Command};

fn is_live(phase: Phase) -> bool {
    match phase {
        Phase::Dialing | Phase::Ringing | Phase::Answered | Phase::Conversing | Phase::Transferring => true,
        Phase::Scheduled | Phase::Queued | Phase::Ended => false,
    }
}

/// What is said at this moment cannot be erased.
#[boxed]
pub(super) async fn check_none_live(deps: &Deps, (tenant, env): (TenantId, Env), whom: &Whom) -> Result<()> {
    let filter = Filter {
        statuses: vec![Status::Queued, Status::InProgress],
        ..sessions_of(whom)
    };
    let mut page = first_page();
    loop {
        let listed = store::list(&deps.db, tenant, env, &filter, page).await?;
        if listed.rows.iter().any(|row| is_live(row.phase)) {
            return Err(Error::InvalidState {
                kind: "call with this person",
                state: "live",
                command: "be erased",
                hint: "wait until it has ended, or end it",
            });
        }
        match listed.rows.last() {
            Some(last) if listed.has_more => page.after = Some(last.id.0),
            Some(_) | None => return Ok(()),
        }
    }
}

impl Job<'_> {
    pub(super) async fn calls(&mut self) -> Result<()> {
        let ((tenant, env), filter) = (self.owner(), sessions_of(&self.whom));
        let mut page = first_page();
        loop {
            let listed = store::list(&self.deps.db, tenant, env, &filter, page).await?;
            let before = self.row.erased.sessions;
            for row in &listed.rows {
                self.call(row).await?;
            }
            if self.row.erased.sessions > before {
                self.note().await?;
            }
            match listed.rows.last() {
                Some(last) if listed.has_more => page.after = Some(last.id.0),
                Some(_) | None => return Ok(()),
            }
            self.rest().await;
        }
    }

    async fn call(&mut self, row: &Model) -> Result<()> {
        let erased = match (row.phase, row.room_id) {
            (Phase::Ended, None) => session::erase(self.deps, row).await,
            (Phase::Ended, Some(id)) => self.room(row, id).await,
            (Phase::Scheduled | Phase::Queued, None) => self.give_up(row).await,
            (Phase::Scheduled, Some(id)) => return self.close(row, id).await,
            (Phase::Queued, Some(_))
            | (Phase::Dialing | Phase::Ringing | Phase::Answered | Phase::Conversing | Phase::Transferring, _) => {
                self.waits = Some(Wait::Call);
                return Ok(());
            }
        };
        if self.judge(erased, Wait::Call)? {
            self.row.erased.sessions += 1;
            self.row.erased.recordings += i64::from(row.recording_id.is_some());
        }
        Ok(())
    }

    /// One that is not placed yet never is.
    async fn give_up(&self, row: &Model) -> Result<()> {
        let ended = self.deps.router.sessions().request(row.key(), Command::End).await?;
        session::erase(self.deps, &ended.row()).await
    }

    async fn room(&self, row: &Model, id: RoomId) -> Result<()> {
        let key = TenantScoped::new(row.tenant_id, row.env, id);
        match rooms::load(&self.deps.db.read, key).await {
            Ok(found) => room::erase(self.deps, &found).await,
            Err(Error::NotFound(_)) => session::erase(self.deps, row).await,
            Err(error) => Err(error),
        }
    }

    /// Nobody joins it any more; its talk ends in a moment, and is erased then.
    async fn close(&mut self, row: &Model, id: RoomId) -> Result<()> {
        self.waits = Some(Wait::Call);
        let key = TenantScoped::new(row.tenant_id, row.env, id);
        match self.deps.router.rooms().request(key, RoomCommand::Expire).await {
            Ok(_) | Err(Error::InvalidState { .. } | Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
