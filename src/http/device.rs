//! Browsers that have signed in before. Each carries a proof of it, and its tries to sign in again as the same user are
//! counted by themselves: whoever guesses that user's password from elsewhere does not keep its owner out. It opens nothing.
use super::{
    error::{ApiError, ApiResult},
    peer::peer,
};
use crate::state::State;
use actix_web::{
    HttpRequest,
    cookie::{Cookie, SameSite, time},
};
use entities::{ids::UserId, user};
use runtime::keyring::purpose;
use uuid::Uuid;

/// Bytes of an e-mail address. Source: RFC 5321.
const MAX_EMAIL: usize = 254;
/// A device that was not used for so long is forgotten.
const LIFE_SECONDS: i64 = 180 * 86_400;

/// A browser as which a user has signed in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Device {
    id: Uuid,
    user: UserId,
}

/// A try to sign in, counted before a password is looked at; answers the user with that e-mail, and whether it comes from a
/// browser of theirs.
pub async fn admit(state: &State, request: &HttpRequest, email: &str) -> ApiResult<(Option<user::Model>, bool)> {
    check_email(email)?;
    let (db, email) = (&state.deps.db.read, email.trim());
    if let Some(device) = of(state, request)
        && state.limits.known_device(device.id)
    {
        let found = user::by_email(db, email).await?;
        if found.as_ref().is_some_and(|user| user.id == device.user) {
            return Ok((found, true));
        }
    }
    state.limits.sign_in(peer(state, request), email)?;
    Ok((user::by_email(db, email).await?, false))
}

/// A try to sign up.
pub fn admit_new(state: &State, request: &HttpRequest, email: &str) -> ApiResult<()> {
    check_email(email)?;
    state.limits.sign_in(peer(state, request), email)
}

fn check_email(email: &str) -> ApiResult<()> {
    if email.len() > MAX_EMAIL {
        let why = format!("has more than {MAX_EMAIL} bytes; write name@example.com");
        return Err(ApiError::validation("email", why));
    }
    Ok(())
}

/// The device that a request comes from, if it proves one. What is forged, damaged or old proves nothing.
fn of(state: &State, request: &HttpRequest) -> Option<Device> {
    let cookie = request.cookie(name(state))?;
    let text = state.deps.keyring.open(purpose::DEVICE, cookie.value()).ok()?;
    read(&text, state.deps.clock.unix_seconds())
}

/// `<user id> <device id> <unix seconds of the last sign-in>`
fn read(text: &str, now: i64) -> Option<Device> {
    let mut parts = text.split(' ');
    let (user, id) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let since: i64 = parts.next()?.parse().ok()?;
    let fresh = now.saturating_sub(since) < LIFE_SECONDS;
    (fresh && parts.next().is_none()).then_some(Device { id, user })
}

/// For the answer to a sign-in that succeeded.
pub fn cookie(state: &State, request: &HttpRequest, user: UserId) -> Cookie<'static> {
    let known = of(state, request).filter(|device| device.user == user);
    let id = known.map_or_else(|| state.deps.ids.next(), |device| device.id);
    let text = format!("{user} {id} {}", state.deps.clock.unix_seconds());
    Cookie::build(name(state), state.deps.keyring.seal(purpose::DEVICE, &text))
        .path("/")
        .http_only(true)
        .secure(state.settings.secure_cookies())
        .same_site(SameSite::Strict)
        .max_age(time::Duration::seconds(LIFE_SECONDS))
        .finish()
}

fn name(state: &State) -> &'static str {
    if state.settings.secure_cookies() {
        "__Host-callboard_device"
    } else {
        "callboard_device"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_old_or_of_another_shape_is_no_device() {
        let (user, id) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let known = Some(Device { id, user: user.into() });
        for (text, expected) in [
            (format!("{user} {id} 1000"), known),
            (format!("{user} {id} 9999"), known),
            (format!("{user} {id} {}", 1000 - LIFE_SECONDS), None),
            (format!("{user} {id} 1000 x"), None),
            (format!("{user} {id}"), None),
            (format!("{user} x 1000"), None),
            (String::new(), None),
        ] {
            assert_eq!(read(&text, 1000), expected, "{text}");
        }
    }
}
