//! Texts with variables: `{{first_name}}`, or `{{first_name|there}}` with what is said instead where there is none.
//!
//! What an agent says is filled leniently: a variable that is missing is nothing. What a campaign writes is checked: nobody is
//! sent a message with a hole in it.
use entities::values::Variables;
use std::collections::BTreeSet;

/// A text that was read, and can be filled for anybody who has its variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Variable { name: String, otherwise: Option<String> },
}

/// Why a text cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfilled {
    /// The variable of that name has no value.
    Missing(String),
    /// It would be longer than a message may be.
    TooLong,
    /// Nothing would stand in it.
    Empty,
}

/// The longest text, with its variables.
const MAX_BYTES: usize = 256 * 1024;

/// How a value is written into the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    No,
    /// `<` and its like lose their meaning.
    Html,
    /// Line breaks become blanks: for a subject.
    Line,
}

impl Template {
    /// Reads a text. Names have letters, digits and `_`; a `{{` without its `}}` is refused.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((inside, after)) = after.split_once("}}") else {
                return Err("has a `{{` without its `}}`".into());
            };
            let (name, otherwise) = split(inside);
            let fits = |char: char| char.is_ascii_alphanumeric() || char == '_';
            if name.is_empty() || name.len() > 100 || !name.chars().all(fits) {
                return Err(format!(
                    "has `{{{{{}}}}}`: a variable's name has letters, digits and _, such as {{{{first_name}}}}",
                    inside.chars().take(50).collect::<String>()
                ));
            }
            pieces.push(Piece::Text(before.into()));
            pieces.push(Piece::Variable {
                name: name.into(),
                otherwise: otherwise.map(Into::into),
            });
            rest = after;
        }
        pieces.push(Piece::Text(rest.into()));
        Ok(Template(pieces))
    }

    /// The variables that everybody must have.
    pub fn needs(&self) -> BTreeSet<&str> {
        let needed = self.0.iter().filter_map(|piece| match piece {
            Piece::Variable { name, otherwise: None } => Some(name.as_str()),
            Piece::Variable { .. } | Piece::Text(_) => None,
        });
        needed.collect()
    }

    /// Is there a place for it?
    pub fn mentions(&self, wanted: &str) -> bool {
        let is_it = |piece: &Piece| matches!(piece, Piece::Variable { name, .. } if name == wanted);
        self.0.iter().any(is_it)
    }

    /// The text for somebody.
    pub fn fill(&self, variables: &Variables, escape: Escape) -> Result<String, Unfilled> {
        self.fill_within(MAX_BYTES, variables, escape)
    }

    /// The same, of so many bytes at most: what is longer is not put together.
    pub fn fill_within(&self, most: usize, variables: &Variables, escape: Escape) -> Result<String, Unfilled> {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Variable { name, otherwise } => {
                    let value = variables.text(name).or_else(|| otherwise.clone());
                    let value = value.ok_or_else(|| Unfilled::Missing(name.clone()))?;
                    write(&mut filled, &value, escape);
                }
            }
            // A variable that stands there often may be long itself.
            if filled.len() > most {
                return Err(Unfilled::TooLong);
            }
        }
        Ok(filled)
    }
}

/// A text for an agent to say: what is missing is nothing, and what is no variable stays as it is.
pub fn fill(text: &str, variables: &Variables) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((inside, after)) = after.split_once("}}") else {
            break;
        };
        filled.push_str(before);
        let (name, otherwise) = split(inside);
        let value = variables.text(name);
        filled.push_str(&value.or_else(|| otherwise.map(Into::into)).unwrap_or_default());
        rest = after;
    }
    filled + rest
}

/// The name, and what is said instead.
fn split(inside: &str) -> (&str, Option<&str>) {
    match inside.split_once('|') {
        Some((name, otherwise)) => (name.trim(), Some(otherwise.trim())),
        None => (inside.trim(), None),
    }
}

fn write(text: &mut String, value: &str, escape: Escape) {
    for char in value.chars() {
        match (escape, char) {
            (Escape::Html, '&') => text.push_str("&amp;"),
            (Escape::Html, '<') => text.push_str("&lt;"),
            (Escape::Html, '>') => text.push_str("&gt;"),
            (Escape::Html, '"') => text.push_str("&quot;"),
            (Escape::Html, '\'') => text.push_str("&#39;"),
            (Escape::Line, char) if char.is_control() => text.push(' '),
            (Escape::No | Escape::Html | Escape::Line, char) => text.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn variables() -> Variables {
        let object = json!({ "first_name": "Ann", "seats": 4, "note": null, "blank": " ", "html": "<b>\"&'" });
        Variables(object.as_object().unwrap().clone().into_iter().collect())
    }

    #[test]
    fn it_is_filled_or_says_what_is_missing() {
        let table = [
            ("Hi {{first_name}}!", Ok("Hi Ann!")),
            ("{{ first_name }}: {{seats}}", Ok("Ann: 4")),
            ("Hi {{nick|there}}", Ok("Hi there")),
            ("Hi {{first_name|there}}", Ok("Hi Ann")),
            ("Hi {{nick|}}.", Ok("Hi .")),
            ("no variables, one } and { here", Ok("no variables, one } and { here")),
            ("Hi {{nick}}", Err("nick")),
            ("Hi {{note}}", Err("note")),
            ("Hi {{blank}}", Err("blank")),
        ];
        for (text, expected) in table {
            let found = Template::parse(text).unwrap().fill(&variables(), Escape::No);
            let expected = expected
                .map(str::to_owned)
                .map_err(|name: &str| Unfilled::Missing(name.into()));
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(
            Template::parse("{{html}}")
                .unwrap()
                .fill(&variables(), Escape::Html)
                .unwrap(),
            "&lt;b&gt;&quot;&amp;&#39;"
        );
    }

    #[test]
    fn it_grows_no_longer_than_a_message_may_be() {
        let long = Variables([("a".to_owned(), json!("\"".repeat(2_000)))].into_iter().collect());
        let template = Template::parse(&"{{a}}".repeat(10_000)).unwrap();
        assert_eq!(template.fill(&long, Escape::Html), Err(Unfilled::TooLong));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for text in ["{{", "a {{b", "{{}}", "{{ }}", "{{a b}}", "{{a-b}}", "{{<script>}}"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
        let template = Template::parse("{{a}} {{b|x}} {{a}}{{c}}").unwrap();
        assert_eq!(template.needs().into_iter().collect::<Vec<_>>(), ["a", "c"]);
    }

    #[test]
    fn an_agent_says_nothing_where_something_is_missing() {
        assert_eq!(
            fill("Hi {{first_name}}{{nick}}, {{nick|you}}{{", &variables()),
            "Hi Ann, you{{"
        );
    }
}
