//! A tool: what it is called, what it takes, and the requests that it makes.
use super::{
    api::{ApiRequest, MAX_ANSWER, MAX_LONG_ANSWER, Method},
    cut::ROOM,
    message::Params,
};
use entities::values::Scope;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

pub struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    /// For a model: what it brings, and when to use it.
    pub description: &'static str,
    /// What the key needs; `None`: any key will do.
    pub scope: Option<Scope>,
    pub method: Method,
    /// A route of the public API. What stands in braces is taken from the argument of that name.
    pub path: &'static str,
    /// Asked beside it.
    pub also: Option<&'static str>,
    pub arguments: &'static [Argument],
    pub shape: Shape,
    /// Its result holds what people outside have said, written or been called.
    pub is_untrusted: bool,
}

/// What the API's answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Object,
    /// One page of a list.
    List,
    /// A long list within an object, of which arguments choose a part.
    Part(Part),
    /// A call, and beside it what was answered in it.
    Evaluation,
    Csv,
}

/// A list that is shown part by part: its field, the arguments that choose of it, and the fields that say where one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub list: &'static str,
    pub first: &'static str,
    pub most: &'static str,
    pub total: &'static str,
    pub next: &'static str,
}

impl Part {
    /// What was said.
    pub const TURNS: Part = Part {
        list: "turns",
        first: "first_turn",
        most: "max_turns",
        total: "turns_total",
        next: "next_first_turn",
    };
    /// What happened.
    pub const ENTRIES: Part = Part {
        list: "entries",
        first: "first_entry",
        most: "max_entries",
        total: "entries_total",
        next: "next_first_entry",
    };
}

pub struct Argument {
    pub name: &'static str,
    pub about: &'static str,
    pub kind: Kind,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the path; required.
    Path,
    /// In the query, by this name or another one.
    Query,
    QueryAs(&'static str),
    /// Not the API's: of the part that is shown.
    Shown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Id,
    /// Of so many letters at most.
    Text(usize),
    Choice(&'static [&'static str]),
    /// From, to, and what counts without it.
    Integer(u64, u64, u64),
}

/// An argument that does not fit.
#[derive(Debug, PartialEq, Eq)]
pub struct Unfit {
    pub argument: String,
    pub why: String,
}

impl Tool {
    /// As `tools/list` shows it.
    pub fn listed(&self) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.schema(),
            "annotations": {
                "title": self.title,
                // True of all of them: `tests::no_tool_changes_anything` holds the table to it.
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        })
    }

    fn schema(&self) -> Value {
        let properties: Map<String, Value> = self
            .arguments
            .iter()
            .map(|argument| (argument.name.to_owned(), argument.schema()))
            .collect();
        let required: Vec<&str> = self
            .arguments
            .iter()
            .filter(|argument| argument.place == Place::Path)
            .map(|argument| argument.name)
            .collect();
        let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    /// The requests that it makes with these arguments.
    pub fn requests(&self, given: &Params) -> Result<Vec<ApiRequest>, Unfit> {
        self.check_names(given)?;
        let (mut path, mut also) = (self.path.to_owned(), self.also.map(str::to_owned));
        let mut query = form_urlencoded::Serializer::new(String::new());
        let mut is_narrowed = false;
        for argument in self.arguments {
            let value = argument.value(given)?;
            let name = match (argument.place, &value) {
                (Place::Shown, _) | (Place::Query | Place::QueryAs(_), None) => continue,
                (Place::Path, None) => return Err(argument.unfit("is required")),
                (Place::Path, Some(value)) => {
                    let place = format!("{{{}}}", argument.name);
                    path = path.replace(&place, value);
                    also = also.map(|also| also.replace(&place, value));
                    continue;
                }
                (Place::Query, Some(_)) => argument.name,
                (Place::QueryAs(name), Some(_)) => name,
            };
            query.append_pair(name, value.as_deref().unwrap_or_default());
            is_narrowed = true;
        }
        if is_narrowed {
            path = format!("{path}?{}", query.finish());
        }
        let most = match self.shape {
            // Of a file the beginning is enough.
            Shape::Csv => ROOM,
            // All of it comes at once, whichever part is shown.
            Shape::Part(_) => MAX_LONG_ANSWER,
            Shape::Object | Shape::List | Shape::Evaluation => MAX_ANSWER,
        };
        let first = ApiRequest {
            method: self.method,
            target: path,
            most,
        };
        Ok([Some(first), also.map(ApiRequest::get)].into_iter().flatten().collect())
    }

    fn check_names(&self, given: &Params) -> Result<(), Unfit> {
        let known = |name: &&String| self.takes(name);
        let Some(name) = given.keys().find(|name| !known(name)) else {
            return Ok(());
        };
        let names: Vec<&str> = self.arguments.iter().map(|argument| argument.name).collect();
        let why = match names[..] {
            [] => "is not known: this tool takes no arguments".to_owned(),
            _ => format!("is not an argument of this tool; those are {}", names.join(", ")),
        };
        Err(Unfit {
            argument: name.chars().take(100).collect(),
            why,
        })
    }

    pub fn takes(&self, name: &str) -> bool {
        self.arguments.iter().any(|argument| argument.name == name)
    }

    /// Of an argument that is a number and shapes what is shown.
    pub fn number(&self, name: &str, given: &Params) -> usize {
        let argument = self.arguments.iter().find(|argument| argument.name == name);
        let Some(Kind::Integer(_, _, usual)) = argument.map(|argument| argument.kind) else {
            return 0;
        };
        let number = given.get(name).and_then(Value::as_u64).unwrap_or(usual);
        usize::try_from(number).unwrap_or(usize::MAX)
    }
}

impl Argument {
    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Id => json!({ "type": "string", "format": "uuid" }),
            Kind::Text(most) => json!({ "type": "string", "minLength": 1, "maxLength": most }),
            Kind::Choice(values) => json!({ "type": "string", "enum": values }),
            Kind::Integer(least, most, usual) => {
                json!({ "type": "integer", "minimum": least, "maximum": most, "default": usual })
            }
        };
        schema["description"] = self.about.into();
        schema
    }

    fn unfit(&self, why: impl Into<String>) -> Unfit {
        Unfit {
            argument: self.name.to_owned(),
            why: why.into(),
        }
    }

    /// As it goes to the API. What the API can judge better than we (numbers, times, codes) it judges.
    fn value(&self, given: &Params) -> Result<Option<String>, Unfit> {
        let value = match (given.get(self.name), self.kind) {
            // Models write null for what they leave out.
            (None | Some(Value::Null), Kind::Integer(_, _, usual)) => return Ok(Some(usual.to_string())),
            (None | Some(Value::Null), _) => return Ok(None),
            (Some(value), _) => value,
        };
        match self.kind {
            Kind::Id => match value.as_str().and_then(|text| text.parse::<uuid::Uuid>().ok()) {
                Some(id) => Ok(Some(id.to_string())),
                None => Err(self.unfit("must be an id (a UUID), as lists show it")),
            },
            Kind::Text(most) => match value.as_str() {
                Some(text) if !text.is_empty() && text.chars().count() <= most => Ok(Some(text.to_owned())),
                _ => Err(self.unfit(format!("must be a text of 1 to {most} letters"))),
            },
            Kind::Choice(values) => match value.as_str() {
                Some(text) if values.contains(&text) => Ok(Some(text.to_owned())),
                _ => Err(self.unfit(format!("must be one of {}", values.join(", ")))),
            },
            Kind::Integer(least, most, _) => match value.as_u64() {
                Some(number) if (least..=most).contains(&number) => Ok(Some(number.to_string())),
                _ => Err(self.unfit(format!("must be a whole number from {least} to {most}"))),
            },
        }
    }
}
