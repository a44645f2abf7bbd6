//! Making an answer of the API small enough for a model's context, and saying so.
use serde_json::{Value, json};

/// Bytes of JSON that a result may have: some 10,000 to 15,000 tokens.
pub const MAX_RESULT: usize = 40_000;
/// Of these, what is said beside the answer.
const REMARKS: usize = 1_000;
/// What an answer itself may have.
pub const ROOM: usize = MAX_RESULT - REMARKS;

/// An answer that fits, and what was left out of it.
#[derive(Debug, PartialEq)]
pub struct Fitted {
    pub answer: Value,
    pub shortened: Option<String>,
}

impl Fitted {
    fn whole(answer: Value) -> Self {
        Fitted {
            answer,
            shortened: None,
        }
    }
}

pub fn size(value: &Value) -> usize {
    // Values always serialise.
    serde_json::to_string(value).map_or(0, |text| text.len())
}

/// An object whose long texts and lists are shortened, ever more of them, until it fits.
pub fn object(answer: Value, room: usize) -> Fitted {
    /// Letters of a text, items of a list.
    const STEPS: [(usize, usize); 5] = [(20_000, 200), (4_000, 100), (1_000, 40), (200, 10), (50, 3)];
    if size(&answer) <= room {
        return Fitted::whole(answer);
    }
    for (letters, items) in STEPS {
        let answer = shrunk(&answer, letters, items);
        if size(&answer) <= room {
            let shortened = format!(
                "the answer was too long: texts of more than {letters} letters and lists of more than {items} items are cut off"
            );
            return Fitted {
                answer,
                shortened: Some(shortened),
            };
        }
    }
    Fitted {
        answer: Value::Null,
        shortened: Some("the answer was too long to be shown at all".into()),
    }
}

fn shrunk(value: &Value, letters: usize, items: usize) -> Value {
    match value {
        Value::String(text) => match text.char_indices().nth(letters) {
            Some((end, _)) => format!("{}…", &text[..end]).into(),
            None => value.clone(),
        },
        Value::Array(all) => all
            .iter()
            .take(items)
            .map(|value| shrunk(value, letters, items))
            .collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), shrunk(value, letters, items)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// As many of these, from the first, as fit; at least one, shortened if it must be.
pub fn first_of(all: Vec<Value>, room: usize) -> (Vec<Value>, Option<String>) {
    let mut left = room;
    let mut fitting = 0;
    for item in &all {
        // And a comma.
        match left.checked_sub(size(item) + 1) {
            Some(rest) => (left, fitting) = (rest, fitting + 1),
            None => break,
        }
    }
    if fitting > 0 || all.is_empty() {
        return (all.into_iter().take(fitting).collect(), None);
    }
    let first = all.into_iter().next().unwrap_or_default();
    let Fitted { answer, shortened } = object(first, room);
    (vec![answer], shortened)
}

/// One page of a list of the API: `data`, `has_more`, `next_cursor`. `goes_on`: the pages after it can be asked for.
pub fn list(mut answer: Value, room: usize, goes_on: bool) -> Fitted {
    if size(&answer) <= room {
        return Fitted::whole(answer);
    }
    let Some(Value::Array(all)) = answer.get_mut("data").filter(|data| data.is_array()).map(Value::take) else {
        return object(answer, room);
    };
    let count = all.len();
    let (kept, shortened) = first_of(all, room.saturating_sub(size(&answer)));
    let shown = kept.len();
    answer["data"] = kept.into();
    let mut said = shortened.into_iter().collect::<Vec<_>>();
    if shown < count {
        // What the cursor stands for comes after what is not shown.
        answer["has_more"] = true.into();
        answer["next_cursor"] = Value::Null;
        said.push(match goes_on {
            true => {
                format!("{shown} of {count} are shown: ask again with `limit` {shown}, and go on with `cursor`")
            }
            false => format!("{shown} of {count} are shown: ask for something narrower"),
        });
    }
    Fitted {
        answer,
        shortened: Some(said.join("; ")).filter(|said| !said.is_empty()),
    }
}

/// The records of a CSV file as it begins; the last one may be broken off.
pub fn csv(body: &[u8], is_cut: bool, room: usize) -> Fitted {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(body);
    let (mut record, mut end, mut rows, mut told) = (csv::ByteRecord::new(), 0, 0_usize, 2);
    let mut is_whole = !is_cut;
    while let Ok(true) = reader.read_byte_record(&mut record) {
        let at = usize::try_from(reader.position().byte()).map_or(body.len(), |at| at.min(body.len()));
        // As it stands in JSON, without the quotes around it.
        told += size(&json!(String::from_utf8_lossy(&body[end..at]))) - 2;
        let is_broken_off = is_cut && at == body.len();
        if is_broken_off || told > room {
            is_whole = false;
            break;
        }
        (end, rows) = (at, rows + 1);
    }
    // The first one names the columns.
    let rows = rows.saturating_sub(1);
    Fitted {
        answer: json!({ "csv": String::from_utf8_lossy(&body[..end]), "rows": rows, "is_whole": is_whole }),
        shortened: (!is_whole).then(|| {
            format!("only the first {rows} rows are shown; `list_campaign_contacts` goes through all of them, a page at a time")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_as_it_is() {
        let answer = json!({ "data": [1, 2], "has_more": false, "next_cursor": null });
        assert_eq!(list(answer.clone(), ROOM, true), Fitted::whole(answer.clone()));
        assert_eq!(object(answer.clone(), ROOM), Fitted::whole(answer));
    }

    #[test]
    fn a_list_loses_its_end_and_says_how_to_go_on() {
        let item = json!({ "text": "x".repeat(90) });
        let answer = json!({ "data": vec![item; 50], "has_more": true, "next_cursor": "abc" });
        let fitted = list(answer, 1_000, true);
        let shown = fitted.answer["data"].as_array().unwrap().len();
        assert!((5..10).contains(&shown), "{shown}");
        assert!(size(&fitted.answer) <= 1_000);
        assert_eq!(fitted.answer["next_cursor"], Value::Null);
        assert_eq!(fitted.answer["has_more"], true);
        assert!(fitted.shortened.unwrap().starts_with(&format!("{shown} of 50")));
    }

    #[test]
    fn whatever_it_is_it_fits() {
        let wide: Value = (0..3_000)
            .map(|n| (format!("field_{n}"), json!("ä".repeat(50))))
            .collect::<serde_json::Map<_, _>>()
            .into();
        for answer in [
            json!("ß".repeat(100_000)),
            json!({ "text": "\u{0}\"".repeat(100_000) }),
            json!(vec![json!({ "text": "long ".repeat(500) }); 500]),
            json!({ "data": [{ "text": "long ".repeat(50_000) }, 2], "has_more": false }),
            json!({ "data": [wide.clone()] }),
            json!({ "data": "no list" , "more": "x".repeat(100_000) }),
            wide,
        ] {
            for fitted in [object(answer.clone(), 2_000), list(answer.clone(), 2_000, true)] {
                assert!(size(&fitted.answer) <= 2_000, "{}", size(&fitted.answer));
                assert!(fitted.shortened.is_some());
            }
        }
    }

    #[test]
    fn of_a_file_whole_records_are_shown() {
        let text = "id,note\n1,\"a\nb\"\n2,c\n3,d\n";
        let whole = csv(text.as_bytes(), false, ROOM);
        assert_eq!(
            whole,
            Fitted::whole(json!({ "csv": text, "rows": 3, "is_whole": true }))
        );
        let cut = csv(&text.as_bytes()[..text.len() - 2], true, ROOM);
        assert_eq!(
            cut.answer,
            json!({ "csv": "id,note\n1,\"a\nb\"\n2,c\n", "rows": 2, "is_whole": false })
        );
        assert!(cut.shortened.is_some());
        let narrow = csv(text.as_bytes(), false, 24);
        assert_eq!(narrow.answer["csv"], "id,note\n1,\"a\nb\"\n");
        assert_eq!(csv(b"", true, ROOM).answer["rows"], 0);
    }
}
