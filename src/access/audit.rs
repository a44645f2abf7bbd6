//! Who did what to access, noted in the transaction that does it.
use actors::deps::Deps;
use entities::{
    Error, Result,
    audit_log::{self, Action, Actor, Details},
    connection::Connection,
    ids::{AuditLogId, TenantId, UserId},
    login, membership, user,
    values::{Moment, Role},
};
use runtime::ids::Ids;
use serde_json::Value;
use std::sync::Arc;

/// Who acts, and when. Cloning is cheap.
#[derive(Clone)]
pub struct Author {
    /// None: the operator.
    user: Option<Signed>,
    ids: Arc<Ids>,
    now: Moment,
}

#[derive(Clone)]
struct Signed {
    id: UserId,
    email: Arc<str>,
    login_hash: Arc<str>,
}

impl Author {
    /// Somebody at the server's command line.
    pub fn operator(ids: Ids, now: Moment) -> Self {
        Author {
            user: None,
            ids: Arc::new(ids),
            now,
        }
    }

    /// Somebody who is signed in.
    pub fn user(deps: &Deps, user: &user::Model, login_hash: &str) -> Self {
        Author {
            user: Some(Signed {
                id: user.id,
                email: user.email.as_str().into(),
                login_hash: login_hash.into(),
            }),
            ids: deps.ids.clone(),
            now: deps.clock.now(),
        }
    }

    /// Is it still somebody who may do that? Asked in the transaction of the act: a request whose body came late was admitted
    /// before its sender was let go.
    pub async fn still(&self, db: &Connection, tenant: TenantId, role: Role) -> Result<()> {
        let Some(signed) = &self.user else { return Ok(()) };
        let is_in = login::find(db, &signed.login_hash).await?.is_some();
        match membership::role_of(db, tenant, signed.id).await? {
            Some(has) if is_in && has >= role => Ok(()),
            _ => Err(Error::NotFound("workspace")),
        }
    }

    /// The user's address; none: the operator.
    pub fn email(&self) -> Option<String> {
        self.user.as_ref().map(|user| user.email.to_string())
    }

    /// None: the operator.
    pub fn user_id(&self) -> Option<UserId> {
        self.user.as_ref().map(|user| user.id)
    }

    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    pub fn now(&self) -> Moment {
        self.now
    }

    /// Notes an act in a workspace.
    pub async fn note(
        &self,
        db: &Connection,
        tenant: TenantId,
        action: Action,
        subject: &str,
        details: &[(&str, Value)],
    ) -> Result<()> {
        self.note_as(db, self.ids.next(), tenant, action, subject, details)
            .await
    }

    /// The same, in a row of that id.
    pub async fn note_as(
        &self,
        db: &Connection,
        id: AuditLogId,
        tenant: TenantId,
        action: Action,
        subject: &str,
        details: &[(&str, Value)],
    ) -> Result<()> {
        let row = self.row(Some(tenant), action, subject, details);
        audit_log::add(db, &[audit_log::Model { id, ..row }]).await
    }

    /// Notes an act on an account: in each workspace that it belongs to, for their owners; once if it belongs to none.
    pub async fn note_of_account(
        &self,
        db: &Connection,
        account: &user::Model,
        action: Action,
        details: &[(&str, Value)],
    ) -> Result<()> {
        let memberships = membership::of_user(db, account.id).await?;
        let row = |tenant| self.row(tenant, action, &account.email, details);
        let mut rows: Vec<_> = memberships.iter().map(|(tenant, _)| row(Some(tenant.id))).collect();
        if rows.is_empty() {
            rows.push(row(None));
        }
        audit_log::add(db, &rows).await
    }

    fn row(
        &self,
        tenant_id: Option<TenantId>,
        action: Action,
        subject: &str,
        details: &[(&str, Value)],
    ) -> audit_log::Model {
        let details = details.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        audit_log::Model {
            id: self.ids.next(),
            tenant_id,
            actor: if self.user.is_some() {
                Actor::User
            } else {
                Actor::Operator
            },
            user_id: self.user.as_ref().map(|user| user.id),
            user_email: self.user.as_ref().map(|user| user.email.to_string()),
            action,
            subject: subject.to_owned(),
            details: Details(details.collect()),
            at: self.now,
        }
    }
}
