//! What stands in the address: ids of a path and query parameters.
use super::super::error::ApiError;
use actix_web::{FromRequest, HttpRequest, dev::Payload};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use entities::{page::Page, values::Moment};
use rules::{event::CATALOGUE, shape};
use serde::de::DeserializeOwned;
use std::{
    collections::BTreeMap,
    future::{Ready, ready},
    str::FromStr,
};
use uuid::Uuid;

/// The `{id}` of a path. What is not an id is an object that does not exist.
pub struct Id<I>(pub I);

impl<I: FromStr> FromRequest for Id<I> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;
    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let id = request.match_info().get("id").and_then(|text| text.parse().ok());
        ready(
            id.map(Id)
                .ok_or_else(|| ApiError::not_found("there is no object with this id; ids are UUIDs")),
        )
    }
}

/// Query parameters, taken one by one; what is left over at the end is a mistake of the client.
pub struct Params {
    given: BTreeMap<String, String>,
    /// Those that were given more than once, with what was given again.
    again: BTreeMap<String, Vec<String>>,
}

impl FromRequest for Params {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;
    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let (mut given, mut again) = (BTreeMap::new(), BTreeMap::<String, Vec<String>>::new());
        for (name, value) in url::form_urlencoded::parse(request.query_string().as_bytes()) {
            // PostgreSQL cannot look for it.
            if value.contains('\0') {
                return ready(Err(ApiError::validation(name, "must not contain NUL characters")));
            }
            if given.contains_key(&*name) {
                again.entry(name.into_owned()).or_default().push(value.into_owned());
            } else {
                given.insert(name.into_owned(), value.into_owned());
            }
        }
        ready(Ok(Params { given, again }))
    }
}

impl Params {
    /// None of one that was given twice: that is refused at the end.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let value = self.given.remove(name);
        value.filter(|_| !self.again.contains_key(name))
    }

    /// A value that JSON would hold as a text.
    pub fn text<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, ApiError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        let value = shape::parse_part(serde_json::Value::String(text));
        value.map(Some).map_err(|why| ApiError::validation(name, why))
    }

    /// `true` or `false`; without it `false`.
    pub fn flag(&mut self, name: &str) -> Result<bool, ApiError> {
        match self.take(name).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(text) => Err(ApiError::validation(
                name,
                format!("must be `true` or `false`, not `{text}`"),
            )),
        }
    }

    /// Values with commas between them, or each under the name anew, as some clients write lists; each once.
    pub fn several<T: DeserializeOwned + PartialEq>(&mut self, name: &str) -> Result<Vec<T>, ApiError> {
        let first = self.given.remove(name);
        let more = self.again.remove(name).unwrap_or_default();
        let mut values = Vec::new();
        let texts = first.iter().chain(&more);
        for part in texts.flat_map(|text| text.split(',')) {
            let value = shape::parse_part(serde_json::Value::String(part.trim().into()));
            let value = value.map_err(|why| ApiError::validation(name, why))?;
            if !values.contains(&value) {
                values.push(value);
            }
        }
        Ok(values)
    }

    /// One of the catalogue's types.
    pub fn event_type(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        if CATALOGUE.iter().any(|known| known.name == text) {
            Ok(Some(text))
        } else {
            let message = format!("`{text}` is not an event type; see GET /v1/event_types");
            Err(ApiError::validation(name, message))
        }
    }

    fn time(&mut self, name: &str) -> Result<Option<Moment>, ApiError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        Moment::parse(&text)
            .map(Some)
            .map_err(|why| ApiError::validation(name, why))
    }

    /// `limit`, `cursor`, `order`, `created_after` and `created_before`.
    pub fn page(&mut self) -> Result<Page, ApiError> {
        let mut page = Page::default();
        if let Some(limit) = self.take("limit") {
            let parsed = limit.parse().ok().filter(|limit| (1..=100).contains(limit));
            page.limit = parsed.ok_or_else(|| {
                ApiError::validation("limit", format!("must be a number from 1 to 100, not `{limit}`"))
            })?;
        }
        if let Some(order) = self.take("order") {
            page.newest_first = match order.as_str() {
                "desc" => true,
                "asc" => false,
                _ => {
                    return Err(ApiError::validation(
                        "order",
                        format!("must be `asc` or `desc`, not `{order}`"),
                    ));
                }
            };
        }
        if let Some(cursor) = self.take("cursor") {
            let bad = || {
                ApiError::validation(
                    "cursor",
                    "is not a cursor of this list: use the `next_cursor` of an answer as it is",
                )
            };
            page.after = Some(decode_cursor(&cursor).ok_or_else(bad)?);
        }
        page.created_after = self.time("created_after")?;
        page.created_before = self.time("created_before")?;
        Ok(page)
    }

    /// Nothing may be left over.
    pub fn finish(self) -> Result<(), ApiError> {
        if let Some(name) = self.again.into_keys().next() {
            return Err(ApiError::validation(name, "is given twice"));
        }
        match self.given.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(ApiError::validation(name, "is not a parameter of this request")),
        }
    }
}

pub fn encode_cursor(id: Uuid) -> String {
    URL_SAFE_NO_PAD.encode(id.as_bytes())
}

fn decode_cursor(cursor: &str) -> Option<Uuid> {
    Uuid::from_slice(&URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()
}
