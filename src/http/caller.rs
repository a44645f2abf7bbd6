//! Who is behind a request, and what a route asks of them.
use super::error::{ApiError, ApiResult};
use actix_web::{FromRequest, HttpMessage, HttpRequest, dev::Payload};
use entities::{
    api_key,
    ids::{TenantId, TenantScoped, UserId},
    tenant, user,
    values::{Env, Role, Scope},
};
use runtime::ids::Ids;
use std::{
    future::{Ready, ready},
    sync::Arc,
};

/// What a route asks of its caller. Part of the route's declaration: there is no route without one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// Anybody.
    Public,
    /// Any valid API key.
    AnyKey,
    /// Any valid API key, which the handler shows to the API in requests of its own: those admit it, or do not.
    Relayed,
    /// A key with this scope.
    Needs(Scope),
    /// A key with this scope; in the console a member who has given the password within the last ten minutes: it shows a
    /// secret, replaces one, or says where one is sent.
    NeedsFresh(Scope),
    /// A key with this scope, or a link of ours that carries its own proof (`sig`), which the handler checks.
    NeedsOrLink(Scope),
    /// A signed-in user.
    SignedIn,
    /// A member of the workspace in the path, with at least this role.
    Member(Role),
    /// The same, who has given the password within the last ten minutes: what gives others access.
    Fresh(Role),
}

/// By what a request is admitted to a workspace.
#[derive(Clone)]
pub enum By {
    Key(Box<api_key::Model>),
    /// A page of the console, in which a member is signed in.
    Member {
        user_id: UserId,
        email: Arc<str>,
        login_hash: Arc<str>,
    },
}

/// Who is behind a request for a workspace's objects: a program with its key, or a member in the console.
#[derive(Clone)]
pub struct Caller {
    tenant_id: TenantId,
    env: Env,
    by: By,
    /// The id that an object made by this request is to have; given by its `Idempotency-Key`.
    pub object_id: Option<uuid::Uuid>,
}

impl Caller {
    pub fn with_key(key: api_key::Model) -> Self {
        Caller {
            tenant_id: key.tenant_id,
            env: key.env,
            by: By::Key(Box::new(key)),
            object_id: None,
        }
    }
    /// Somebody signed in to the console, in one environment of a workspace.
    pub fn signed_in(tenant_id: TenantId, env: Env, member: &Member) -> Self {
        Caller {
            tenant_id,
            env,
            by: By::Member {
                user_id: member.user_id(),
                email: member.user.email.as_str().into(),
                login_hash: member.login_hash.as_str().into(),
            },
            object_id: None,
        }
    }
    pub fn tenant_id(&self) -> TenantId {
        self.tenant_id
    }
    pub fn env(&self) -> Env {
        self.env
    }
    pub fn by(&self) -> &By {
        &self.by
    }
    /// `None`: a member, whom no key's limits hold.
    pub fn key(&self) -> Option<&api_key::Model> {
        match &self.by {
            By::Key(key) => Some(key),
            By::Member { .. } => None,
        }
    }
    /// For whoever reads later who did something: a member's address, or a key's name and how it begins.
    pub fn name(&self) -> String {
        match &self.by {
            By::Key(key) => format!("{} ({}…)", key.name, key.key_prefix),
            By::Member { email, .. } => email.to_string(),
        }
    }
    /// Whose objects are the caller's.
    pub fn owner(&self) -> (TenantId, Env) {
        (self.tenant_id, self.env)
    }
    /// An object of the caller's.
    pub fn own<I>(&self, id: I) -> TenantScoped<I> {
        TenantScoped::new(self.tenant_id, self.env, id)
    }
    /// The id for a new object: the same one when a request is repeated after a crash.
    pub fn new_id<I: From<uuid::Uuid>>(&self, ids: &Ids) -> I {
        self.object_id.map_or_else(|| ids.next(), I::from)
    }
}

/// The signed-in user behind a dashboard request, and the workspace in its path.
#[derive(Clone)]
pub struct Member {
    pub user: user::Model,
    pub login_hash: String,
    pub workspace: Option<(tenant::Model, Role)>,
}

impl Member {
    pub fn user_id(&self) -> UserId {
        self.user.id
    }
    pub fn tenant(&self) -> ApiResult<&tenant::Model> {
        self.workspace
            .as_ref()
            .map(|(tenant, _)| tenant)
            .ok_or_else(|| ApiError::not_found("no such workspace"))
    }
}

macro_rules! from_extensions { ($($type:ty),*) => {$(
    impl FromRequest for $type {
        type Error = ApiError;
        type Future = Ready<Result<Self, ApiError>>;
        fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
            // The gate has put it there; a route whose access does not provide it is our mistake.
            let found = request.extensions().get::<$type>().cloned();
            ready(found.ok_or_else(|| entities::Error::Internal("a route's access does not provide its caller".into()).into()))
        }
    }
)*} }
from_extensions!(Caller, Member);
