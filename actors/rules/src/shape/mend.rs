//! All that is wrong with a value's shape, where reading it stops at the first: that is put right by what stands in its place in
//! a good value, or left out, and the value is read again. So each fault is told in the words that it has alone.
//!
//! Only what has failed comes here. It is read [`READINGS`] times at most, and only if it is small: a bad body costs no more than
//! a good one of 3 MiB.
use super::{Misshapen, at_its_path, no_object};
use entities::error::{Fault, FaultCode, MOST_FAULTS};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Bytes of a text that is read again.
const MOST_TEXT: usize = 64 * 1024;
/// Values in a value that is read again; of a larger one only the first fault is told.
const MOST_VALUES: usize = 5_000;
const READINGS: usize = 2 * MOST_FAULTS;
/// The field by which the others of its object are chosen: while it is wrong they tell nothing.
const TAG: [Step<'static>; 2] = [Step::Name("brain"), Step::Name("mode")];

/// A JSON value as a `T`; or all that is wrong with it. `good`: a value that can be read.
pub fn parse_all<T: DeserializeOwned>(value: Value, good: &Value) -> Result<T, Vec<Fault>> {
    if !value.is_object() {
        return Err(vec![no_object().into()]);
    }
    let read = serde_path_to_error::deserialize(&value);
    read.map_err(|error| collect(value, good, at_its_path(error), &fault_of::<T>))
}

/// All that is wrong with a text that could not be read as a `T`, behind what was met first.
pub fn faults_of_text<T: DeserializeOwned>(text: &[u8], good: Option<&Value>, first: Misshapen) -> Vec<Fault> {
    let value = (text.len() <= MOST_TEXT).then(|| serde_json::from_slice(text));
    match (value, good) {
        (Some(Ok(value)), Some(good)) => collect(value, good, first, &fault_of::<T>),
        _ => vec![first.into()],
    }
}

fn fault_of<T: DeserializeOwned>(value: &Value) -> Option<Misshapen> {
    let read: Result<T, _> = serde_path_to_error::deserialize(value);
    read.err().map(at_its_path)
}

/// Not generic, so that it is compiled once.
fn collect(
    mut value: Value,
    good: &Value,
    first: Misshapen,
    fault_of: &dyn Fn(&Value) -> Option<Misshapen>,
) -> Vec<Fault> {
    // Of two fields of one name the value has the second: there is nothing to mend.
    let mut is_right = first.code == FaultCode::DuplicateField;
    let mut faults = vec![Fault::from(first.clone())];
    let mut left = Left {
        values: MOST_VALUES,
        bytes: MOST_TEXT,
    };
    if !left.takes(&value) {
        return faults;
    }
    // What is mended, and how many levels above it.
    let (mut wrong, mut up) = (first, 0);
    for _ in 0..READINGS {
        if !is_right {
            match mend(&mut value, good, &wrong, up) {
                Some(at) => up = at,
                None => break,
            }
        }
        is_right = false;
        let Some(next) = fault_of(&value) else { break };
        if steps(&wrong.param).starts_with(&steps(&next.param)) {
            // It is wrong still, or lacking now because it was left out: what holds it is mended in its place.
            up += 1;
        } else if faults.iter().any(|known| known.field == next.param) {
            (wrong, up) = (next, 1);
        } else if faults.len() == MOST_FAULTS {
            break;
        } else {
            faults.push(next.clone().into());
            (wrong, up) = (next, 0);
        }
    }
    faults
}

/// Puts right what is wrong, or what holds it, from so many levels above it on; answers how many it took.
fn mend(value: &mut Value, good: &Value, wrong: &Misshapen, up: usize) -> Option<usize> {
    let path = steps(&wrong.param);
    let is_tag = path.ends_with(&TAG);
    let is_unknown = wrong.code == FaultCode::UnknownField;
    (up.max(usize::from(is_tag))..path.len()).find(|up| {
        let path = &path[..path.len() - up];
        put_right(value, path, follow(good, path).filter(|_| !is_unknown))
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

/// Of `replies[1].call.name`. A key with a dot in it leads nowhere: then what holds it is put right.
fn steps(path: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let (name, indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        if !name.is_empty() {
            steps.push(Step::Name(name));
        }
        let indices = indices.split(['[', ']']).filter_map(|text| text.parse().ok());
        steps.extend(indices.map(Step::Index));
    }
    steps
}

/// What stands there; of a shorter list its last entry.
fn follow<'a>(good: &'a Value, path: &[Step<'_>]) -> Option<&'a Value> {
    path.iter().try_fold(good, |value, step| match step {
        Step::Name(name) => value.get(name),
        Step::Index(at) => value.get(at).or_else(|| value.as_array()?.last()),
    })
}

/// Has it changed anything?
fn put_right(value: &mut Value, path: &[Step<'_>], good: Option<&Value>) -> bool {
    let Some((last, parents)) = path.split_last() else {
        return false;
    };
    let parent = parents.iter().try_fold(value, |value, step| match step {
        Step::Name(name) => value.get_mut(name),
        Step::Index(at) => value.get_mut(at),
    });
    match (last, parent, good) {
        (Step::Name(name), Some(Value::Object(fields)), Some(good)) => {
            fields.insert((*name).to_owned(), good.clone()).as_ref() != Some(good)
        }
        (Step::Name(name), Some(Value::Object(fields)), None) => fields.shift_remove(*name).is_some(),
        (Step::Index(at), Some(Value::Array(items)), Some(good)) => match items.get_mut(*at) {
            Some(item) => std::mem::replace(item, good.clone()) != *good,
            None => false,
        },
        _ => false,
    }
}

/// What a value that is read again may still have.
struct Left {
    values: usize,
    /// Of texts and names.
    bytes: usize,
}

impl Left {
    fn takes(&mut self, value: &Value) -> bool {
        let Some(values) = self.values.checked_sub(1) else {
            return false;
        };
        self.values = values;
        match value {
            Value::Array(items) => items.iter().all(|item| self.takes(item)),
            Value::Object(fields) => fields.iter().all(|(name, field)| self.has(name) && self.takes(field)),
            Value::String(text) => self.has(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        }
    }

    fn has(&mut self, text: &str) -> bool {
        let left = self.bytes.checked_sub(text.len());
        self.bytes = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
#[path = "mend_tests.rs"]
mod tests;
