//! Requests with an `Idempotency-Key` that are running in this process.
use crate::{http::{bodies::MIB, caller::Caller, error::ApiError, extract, voices::{Fingerprint, Form}}, state::State};
use actix_web::{Error as ActixError, HttpMessage, HttpResponse, ResponseError, body::{self, BoxBody, MessageBody}, dev::{Payload, ServiceRequest, ServiceResponse}, http::{StatusCode, header}, middleware::Next};
use actors::deps::Deps;
use entities::idempotency::{self as store, Model as Claim};
use rules::commit::Commit;
use runtime::keyring::{hex, purpose};
use sha2::{Digest, Sha256};
use std::{collections::HashSet, sync::{Arc, Mutex, MutexGuard, PoisonError}};

/// Keys whose first request is running in this process.
#[derive(Clone, Default)]
pub struct Running(Arc<Mutex<HashSet<String>>>);

impl Running {
    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
