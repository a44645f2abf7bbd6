//! Numbers that prove whose they are: a code is made, comes to the number, and is said back. Each step is one transaction of
//! the writer's, so that two tries at once are two tries. The code leaves after its commit: one that is lost on the way is
//! asked for again, and counts.
//!
//! A code of a live key has come to the number, so that it also claims it for live use ([`claim`]); one of a test key, which
//! is shown it, opens the number to test calls alone.
pub mod claim;

use crate::{deps::Deps, sms};
use entities::{
    Error, Result, boxed,
    ids::{TenantId, VerifiedNumberId},
    number_claim::{self, Source},
    values::{E164, Env, Moment, Text},
    verified_number::{self as store, Method, Model, Status, codes},
};
use hmac::{Hmac, Mac};
use rules::{
    commit::Commit,
    verify::machine::{self, Command, Phase, Said},
};
use runtime::{
    keyring::{self, purpose},
    link_keys::LinkKeys,
    supervise::join_text,
};
use sha2::Sha256;
use zeroize::Zeroizing;

/// A number that shall be verified.
#[derive(Clone, Debug)]
pub struct VerificationRequest {
    pub phone_number: E164,
    pub method: Method,
    /// None: as it was.
    pub label: Option<Text<1, 200>>,
}

/// What became of a request for a code.
#[derive(Clone, Debug)]
pub enum Answered {
    /// It is made, and on its way.
    Made(Box<Model>),
    /// Too many were made; the next one may be made then.
    TooMany { until: Moment },
}

/// What became of a code that was said.
#[derive(Clone, Debug)]
pub enum Confirmed {
    Yes(Box<Model>),
    /// It was wrong; so many tries are left.
    No {
        left: i32,
    },
}

/// What the writer's transaction came to.
#[derive(Clone)]
enum CodeOutcome {
    /// A repeat of a request whose answer was lost: its code is on its way.
    Known(Box<Model>),
    Made(Box<Model>, Zeroizing<String>),
    TooMany {
        until: Moment,
    },
}

/// Numbers of a workspace, verified or not.
const MAX_NUMBERS: u64 = 1_000;

/// Makes a code for a number and sends it on its way; a new number gets this id.
#[boxed]
pub async fn ask(
    deps: &Deps,
    (tenant, env): (TenantId, Env),
    id: VerifiedNumberId,
    asked: VerificationRequest,
) -> Result<Answered> {
    check_number(deps, env, &asked.phone_number)?;
    check_way(deps, env, asked.method)?;
    let its = deps.clone();
    let making = deps
        .writer
        .run(tenant, move |db| {
            let (deps, asked) = (its.clone(), asked.clone());
            Box::pin(async move {
                let now = deps.clock.now();
                let known = store::of_number(db, tenant, &asked.phone_number).await?;
                if let Some(known) = &known
                    && known.id == id
                {
                    return Ok((CodeOutcome::Known(Box::new(known.clone())), Commit::default()));
                }
                let claims = env == Env::Live && !number_claim::holds(db, tenant, &asked.phone_number).await?;
                let known_phase = known.as_ref().map(phase).transpose()?;
                let (phase, _) = machine::transition(known_phase, Command::Ask { claims }, now)?;
                if known.is_none() && store::count(db, tenant).await? >= MAX_NUMBERS {
                    let why = format!("a workspace has at most {MAX_NUMBERS} verified numbers; delete some");
                    return Err(Error::PlanLimit(why));
                }
                let since = now.plus_seconds(-machine::WINDOW_SECONDS);
                let (of_number, of_tenant) = codes::since(db, tenant, &asked.phone_number, since).await?;
                if let Some(until) = machine::too_many(&of_number, &of_tenant, now) {
                    return Ok((CodeOutcome::TooMany { until }, Commit::default()));
                }
                let code = new_code(env);
                let fresh = Model {
                    version: 0,
                    ..Model::vouched(id, tenant, asked.phone_number.clone(), now)
                };
                let before = known.unwrap_or(fresh);
                let row = Model {
                    method: asked.method,
                    label: asked.label.map(Text::into_string).or(before.label.clone()),
                    env,
                    code_hash: Some(hashed(&deps.links, &code)),
                    sealed_code: match env {
                        Env::Test => Some(deps.keyring.seal(purpose::VERIFICATION_CODE, &code)),
                        Env::Live => None,
                    },
                    version: before.version + 1,
                    ..stands(before, phase)
                };
                store::save(db, &row).await?;
                let made = codes::Model {
                    id: deps.ids.next(),
                    tenant_id: tenant,
                    phone_number: row.phone_number.clone(),
                    created_at: now,
                };
                codes::note(db, made, since).await?;
                Ok((CodeOutcome::Made(Box::new(row), code), Commit::default()))
            })
        })
        .await?;
    match making {
        CodeOutcome::Known(row) => Ok(Answered::Made(row)),
        CodeOutcome::Made(row, code) => send(deps, row, code).await,
        CodeOutcome::TooMany { until } => Ok(Answered::TooMany { until }),
    }
}

async fn send(deps: &Deps, row: Box<Model>, code: Zeroizing<String>) -> Result<Answered> {
    // It goes on also when nobody waits for the answer any more: the code counts.
    let (its, to) = (deps.clone(), row.clone());
    let sending = deps.runtime.spawn(async move { deliver(&its, &to, &code).await });
    sending.await.map_err(|error| Error::Internal(join_text(error)))??;
    Ok(Answered::Made(row))
}

/// Numbers that nobody has to prove, or nobody can.
fn check_number(deps: &Deps, env: Env, number: &E164) -> Result<()> {
    if let Some(kind) = number.costly_kind()
        && !deps.limits.allow_costly_numbers
    {
        let why = format!("is {kind}: the operator does not allow calls to it");
        return Err(Error::invalid("phone_number", why));
    }
    if number.is_sandbox() {
        let why = "is a sandbox number: test keys may call it without verification";
        return Err(Error::invalid("phone_number", why));
    }
    if env == Env::Live && deps.sms.is_shared(number) {
        let why = "is this installation's own number, which sends for workspaces without one";
        return Err(Error::invalid("phone_number", why));
    }
    Ok(())
}

/// Is there a way for a code to its number? Asked before one is made.
fn check_way(deps: &Deps, env: Env, method: Method) -> Result<()> {
    let has_way = match (env, method) {
        (Env::Test, Method::Sms | Method::Call) => true,
        (Env::Live, Method::Sms) => deps.sms.of(env).is_some(),
        // Codes are not spoken over live calls.
        (Env::Live, Method::Call) => false,
    };
    let why = match method {
        Method::Sms => "no SMS provider is configured to send the code; with a test key the code is shown instead",
        Method::Call => {
            "codes are not spoken over live calls: use `method` `sms`; with a test key the code is shown instead"
        }
    };
    has_way.then_some(()).ok_or_else(|| Error::NotConfigured(why.into()))
}

/// In every text with a code.
const WORTH: &str = "Whoever has it can call and text from this number";

/// Is a text that came in one of ours, with a code?
pub fn is_code(text: &str) -> bool {
    text.contains(WORTH)
}

/// Brings a code to its number.
#[boxed]
pub async fn deliver(deps: &Deps, row: &Model, code: &str) -> Result<()> {
    match (row.env, row.method) {
        // Nothing leaves the house: whoever asked is shown the code.
        (Env::Test, Method::Sms | Method::Call) => Ok(()),
        (Env::Live, Method::Sms) => {
            // One segment. It says what the code is worth: whoever asks for it may be after the number.
            let minutes = machine::GOOD_FOR_SECONDS / 60;
            let body = format!("{code} is your code. {WORTH}: tell nobody. Good for {minutes} minutes.");
            sms::send_now(deps, (row.tenant_id, row.env), row.phone_number.clone(), body).await
        }
        (Env::Live, Method::Call) => check_way(deps, row.env, row.method),
    }
}

/// Somebody says the code. A wrong one is counted, whatever is answered.
#[boxed]
pub async fn confirm(
    deps: &Deps,
    tenant: TenantId,
    id: VerifiedNumberId,
    code: Zeroizing<String>,
) -> Result<Confirmed> {
    let its = deps.clone();
    deps.writer
        .run(tenant, move |db| {
            let (deps, code) = (its.clone(), code.clone());
            Box::pin(async move {
                let before = store::load(db, tenant, id).await?;
                let hash = before.code_hash.as_deref();
                let right = hash.is_some_and(|hash| fits(&deps.links, hash, &code));
                let (was, now) = (phase(&before)?, deps.clock.now());
                let (phase, said) = machine::transition(Some(was), Command::Confirm { right }, now)?;
                let mut commit = Commit::default();
                let row = match phase == was {
                    true => before,
                    false => {
                        let version = before.version + 1;
                        let row = Model {
                            version,
                            ..stands(before, phase)
                        };
                        store::save(db, &row).await?;
                        if said == Said::Done && row.env == Env::Live {
                            let proven = number_claim::Model {
                                phone_number: row.phone_number.clone(),
                                tenant_id: tenant,
                                source: Source::Code,
                                claimed_at: now,
                            };
                            let (_, mails) = claim::claim(db, &deps.ids, proven).await?;
                            commit.changes.mails.extend(mails);
                        }
                        row
                    }
                };
                let confirmed = match said {
                    Said::Done => Confirmed::Yes(Box::new(row)),
                    Said::Wrong { left } => Confirmed::No { left },
                };
                Ok((confirmed, commit))
            })
        })
        .await
}

/// The code that a test key is shown: while it is waited for, and good.
pub fn shown(deps: &Deps, row: &Model) -> Result<Option<String>> {
    let is_good = row.expires_at.is_some_and(|at| deps.clock.now() < at) && row.wrong_tries < machine::TRIES;
    let sealed = row
        .sealed_code
        .as_deref()
        .filter(|_| is_good && row.status == Status::Pending);
    let opened = sealed.map(|sealed| deps.keyring.open(purpose::VERIFICATION_CODE, sealed));
    Ok(opened.transpose()?.map(|code| code.to_string()))
}

fn phase(row: &Model) -> Result<Phase> {
    let missing = |column| Error::Corrupt {
        table: "verified_numbers",
        column,
        id: row.id.to_string(),
    };
    Ok(match row.status {
        Status::Pending => Phase::Pending {
            expires_at: row.expires_at.ok_or_else(|| missing("expires_at"))?,
            wrong_tries: row.wrong_tries,
        },
        Status::Verified => {
            let at = row.verified_at.unwrap_or(row.created_at);
            match row.expires_at {
                Some(expires_at) => Phase::Claiming {
                    at,
                    expires_at,
                    wrong_tries: row.wrong_tries,
                },
                None => Phase::Verified { at },
            }
        }
    })
}

/// The row in that phase. What is verified needs no code any more.
fn stands(row: Model, phase: Phase) -> Model {
    match phase {
        Phase::Pending {
            expires_at,
            wrong_tries,
        } => Model {
            status: Status::Pending,
            expires_at: Some(expires_at),
            wrong_tries,
            verified_at: None,
            ..row
        },
        Phase::Claiming {
            at,
            expires_at,
            wrong_tries,
        } => Model {
            status: Status::Verified,
            expires_at: Some(expires_at),
            wrong_tries,
            verified_at: Some(at),
            ..row
        },
        Phase::Verified { at } => Model {
            status: Status::Verified,
            verified_at: Some(at),
            expires_at: None,
            code_hash: None,
            sealed_code: None,
            ..row
        },
    }
}

/// Random digits: six where the code is shown, eight where it proves something. Fifty codes an hour with five tries each are
/// two million guesses in a year.
fn new_code(env: Env) -> Zeroizing<String> {
    Zeroizing::new(match env {
        Env::Test => format!("{:06}", rand::random_range(0..1_000_000_u32)),
        Env::Live => format!("{:08}", rand::random_range(0..100_000_000_u32)),
    })
}

/// `<salt>.<HMAC>` in hex, under a key of its own: a million codes are soon tried by one who has only the database.
/// The key outlives the secret key, as a code does that was just sent.
fn hashed(keys: &LinkKeys, code: &str) -> String {
    let salt = rand::random::<[u8; 16]>();
    let hash = mac(&keys.signing(purpose::CODE_HASH), &keyring::hex(&salt), code)
        .finalize()
        .into_bytes();
    format!("{}.{}", keyring::hex(&salt), keyring::hex(&hash))
}

fn fits(keys: &LinkKeys, hash: &str, code: &str) -> bool {
    let Some((salt, hash)) = hash.split_once('.') else {
        return false;
    };
    let Some(hash) = keyring::from_hex(hash) else {
        return false;
    };
    // In constant time.
    keys.proving(purpose::CODE_HASH)
        .any(|key| mac(&key, salt, code).verify_slice(&hash).is_ok())
}

fn mac(key: &[u8; 32], salt: &str, code: &str) -> Hmac<Sha256> {
    use hmac::KeyInit;
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    mac.update(salt.as_bytes());
    mac.update(code.as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_fits_its_code_alone_and_differs_each_time() {
        let keys = LinkKeys::generate();
        let hash = hashed(&keys, "012345");
        assert!(fits(&keys, &hash, "012345"));
        for wrong in ["012346", "12345", "", "0123450"] {
            assert!(!fits(&keys, &hash, wrong), "{wrong}");
        }
        assert_ne!(hash, hashed(&keys, "012345"));
        assert!(!hash.contains("012345"));
        assert!(!fits(&LinkKeys::generate(), &hash, "012345"));
        assert!(!fits(&keys, "damaged", "012345") && !fits(&keys, "a.xyz", "012345"));
    }

    #[test]
    fn codes_have_six_digits_and_live_ones_eight() {
        for (env, digits) in [(Env::Test, 6), (Env::Live, 8)] {
            for _ in 0..1000 {
                let code = new_code(env);
                assert!(code.len() == digits && code.bytes().all(|byte| byte.is_ascii_digit()));
            }
        }
    }
}
