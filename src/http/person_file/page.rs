//! The file for one person as a page that needs nothing else: to be read, sent and printed. Whatever it tells is escaped here.
use super::{FileAttemptView, FileCallView, FileMessageView, FilePart, FileRuleView, PersonFileView};
use crate::http::{report::word, views::ConsentRecordView};
use entities::transcript::Turn;
use rules::law::{Asked, Verdict};
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;color:#111;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem;border-bottom:1px solid #999}\
table{border-collapse:collapse;width:100%}th,td{border:1px solid #bbb;padding:.25rem .5rem;text-align:left;vertical-align:top;\
overflow-wrap:anywhere}thead{display:table-header-group}tr,figure{break-inside:avoid}\
figure{margin:1rem 0}figcaption{font-weight:600}.no{font-weight:600}.notice{border:2px solid #111;padding:.5rem 1rem}\
pre{white-space:pre-wrap;font:inherit;margin:0}dt{font-weight:600}@page{margin:18mm}@media print{body{margin:0;max-width:none}}";

pub fn page(file: &PersonFileView) -> String {
    let mut html = String::with_capacity(64 * 1024);
    let whom = whom(file);
    let _ = writeln!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"robots\" content=\"noindex\">\
         <title>File of {whom}</title><style>{STYLE}</style></head>\n<body>\n<h1>What is kept about {whom}</h1>"
    );
    head(&mut html, file);
    attempts(&mut html, &file.attempts);
    consents(&mut html, file);
    opt_outs(&mut html, file);
    contacts(&mut html, file);
    calls(&mut html, &file.calls);
    messages(&mut html, &file.messages);
    rules(&mut html, &file.rules);
    html.push_str("</body>\n</html>\n");
    html
}

fn whom(file: &PersonFileView) -> String {
    let number = file.phone_number.as_ref().map(ToString::to_string);
    escaped(&number.or_else(|| file.email.clone()).unwrap_or_default())
}

fn head(html: &mut String, file: &PersonFileView) {
    let keeper = file.registered_name.as_ref().unwrap_or(&file.workspace);
    let _ = writeln!(
        html,
        "<dl><dt>Kept by</dt><dd>{}</dd><dt>Made at</dt><dd>{}</dd><dt>Environment</dt><dd>{}</dd></dl>",
        escaped(keeper),
        file.made_at,
        file.env,
    );
    let mut notes = Vec::new();
    if !file.cut.is_empty() {
        notes.push(format!("There is more than this file holds of: {}.", named(&file.cut)));
    }
    if !file.without_words.is_empty() {
        let parts = named(&file.without_words);
        notes.push(format!(
            "Without what was said or written, which whoever asked may not read: {parts}."
        ));
    }
    if !notes.is_empty() {
        let _ = writeln!(html, "<p class=\"notice\">{}</p>", notes.join("<br>"));
    }
}

fn named(parts: &[FilePart]) -> String {
    let names: Vec<String> = parts.iter().map(|part| word(*part).replace('_', " ")).collect();
    names.join(", ")
}

fn attempts(html: &mut String, attempts: &[FileAttemptView]) {
    let rows = attempts.iter().map(|one| {
        let asked: Vec<String> = one.asked.iter().map(verdict).collect();
        let outcome = one
            .outcome
            .as_ref()
            .map_or("not known yet", |outcome| outcome.status.as_str());
        let why = one.outcome.as_ref().and_then(|outcome| outcome.reason.as_deref());
        let mode = if one.observed {
            " (test: rules were only observed)"
        } else {
            ""
        };
        [
            one.at.to_string(),
            format!("{}, {}{mode}", word(one.channel), word(one.purpose)),
            some(one.from_number.as_ref().map(ToString::to_string).as_deref()),
            some(one.seller.as_deref()),
            escaped(&format!(
                "{outcome}{}",
                why.map(|why| format!(" ({why})")).unwrap_or_default()
            )),
            some(one.consent_id.map(|id| id.to_string()).as_deref()),
            format!("{}<br>pack {}", asked.join("<br>"), escaped(&one.pack_version)),
        ]
    });
    let columns = ["At", "What", "Number shown", "For", "Outcome", "Consent", "Rules"];
    table(html, "Attempts to reach this person", columns, rows);
}

fn verdict(asked: &Asked) -> String {
    let rule = escaped(&asked.rule);
    match asked.verdict {
        Verdict::Yes => format!("{rule}: yes"),
        Verdict::Overridden => format!("<span class=\"no\">{rule}: overridden</span>"),
        Verdict::Wait(Some(until)) => format!("<span class=\"no\">{rule}: not before {until}</span>"),
        Verdict::Wait(None) => format!("<span class=\"no\">{rule}: not yet</span>"),
        Verdict::Never => format!("<span class=\"no\">{rule}: no</span>"),
    }
}

fn consents(html: &mut String, file: &PersonFileView) {
    let rows = file.consents.iter().map(|one| {
        let purposes: Vec<String> = one.purposes.0.iter().map(|purpose| word(*purpose)).collect();
        let channels: Vec<String> = one.channels.0.iter().map(|channel| word(*channel)).collect();
        let end = match (one.revoked_at, one.expires_at) {
            (Some(at), _) => format!("revoked {at}"),
            (None, Some(at)) => format!("expires {at}"),
            (None, None) => "stands".to_owned(),
        };
        let taken_back = one.withdrawals.iter().map(|taken| {
            let channel = word(taken.channel);
            escaped(&format!("{channel} taken back {}: {}", taken.at, taken.reason))
        });
        let end: Vec<String> = std::iter::once(end).chain(taken_back).collect();
        [
            one.given_at.to_string(),
            some(one.name.as_deref()),
            escaped(&one.seller),
            format!(
                "{} for {} by {}",
                word(one.tier),
                purposes.join(", "),
                channels.join(", ")
            ),
            proof(one),
            end.join("<br>"),
            one.id.to_string(),
        ]
    });
    table(
        html,
        "Consents",
        ["Given", "By", "To", "What", "How", "End", "Id"],
        rows,
    );
}

/// How it was given, word for word where that is kept, and what proves it.
fn proof(one: &ConsentRecordView) -> String {
    let evidence = one.evidence.as_ref().map(|file| {
        let (kind, sha256) = (&file.content_type, &file.sha256);
        format!("{kind}, {} bytes, SHA-256 {sha256}", file.bytes)
    });
    let parts = [
        ("", Some(one.method.clone())),
        ("Asked: ", one.request_copy.clone()),
        ("Agreed: ", one.consent_copy.clone()),
        ("From ", one.source_url.clone()),
        ("Address ", one.source_ip.clone()),
        ("Recording ", one.recording_id.map(|id| id.to_string())),
        ("File: ", evidence),
    ];
    let told = parts.into_iter().filter_map(|(what, told)| {
        let told = told?;
        Some(format!("<pre>{what}{}</pre>", escaped(&told)))
    });
    told.collect()
}

fn opt_outs(html: &mut String, file: &PersonFileView) {
    let rows = file.opt_outs.iter().map(|one| {
        let channels: Vec<String> = one.channels.0.iter().map(|channel| word(*channel)).collect();
        [
            one.created_at.to_string(),
            channels.join(", "),
            word(one.source),
            some(one.reason.as_deref()),
            some(one.removed_at.map(|at| at.to_string()).as_deref()),
            some(one.removed_reason.as_deref()),
        ]
    });
    let columns = ["Since", "Barred", "How", "Reason", "Taken off", "Why"];
    table(html, "Do-not-call entries", columns, rows);
}

fn contacts(html: &mut String, file: &PersonFileView) {
    let rows = file.contacts.iter().map(|one| {
        let names = [one.first_name.as_deref(), one.last_name.as_deref()];
        let name: Vec<&str> = names.into_iter().flatten().collect();
        let variables: Vec<String> = one
            .variables
            .0
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        [
            one.created_at.to_string(),
            escaped(&name.join(" ")),
            some(one.phone_number.as_deref()),
            some(one.email.as_deref()),
            word(one.status),
            escaped(&variables.join("; ")),
        ]
    });
    let columns = ["Added", "Name", "Number", "Address", "Status", "Further details"];
    table(html, "In campaigns", columns, rows);
}

fn calls(html: &mut String, calls: &[FileCallView]) {
    let rows = calls.iter().map(|one| {
        let names = [one.first_name.as_deref(), one.last_name.as_deref()];
        let name: Vec<&str> = names.into_iter().flatten().collect();
        [
            one.at.to_string(),
            word(one.direction),
            some(one.from_number.as_ref().map(ToString::to_string).as_deref()),
            escaped(&name.join(" ")),
            format!(
                "{} {}",
                word(one.status),
                escaped(one.end_reason.as_deref().unwrap_or_default())
            ),
            format!("{} s", one.duration_seconds),
            some(one.recording_id.map(|id| id.to_string()).as_deref()),
            escaped(&one.transcript_url),
        ]
    });
    let columns = [
        "At",
        "Direction",
        "From",
        "Name",
        "Outcome",
        "Lasted",
        "Recording",
        "What was said",
    ];
    table(html, "Calls", columns, rows);
    for one in calls {
        let turns = one.turns.iter().flatten();
        let lines: Vec<String> = turns.filter_map(line).collect();
        if !lines.is_empty() {
            let said = lines.join("\n");
            let _ = writeln!(
                html,
                "<figure><figcaption>Call at {}</figcaption><pre>{said}</pre></figure>",
                one.at
            );
        }
    }
}

/// What functions answered is not what anybody said.
fn line(turn: &Turn) -> Option<String> {
    let said = turn.content.as_deref().filter(|said| !said.is_empty())?;
    Some(format!("{}: {}", word(turn.role), escaped(said)))
}

fn messages(html: &mut String, messages: &[FileMessageView]) {
    let rows = messages.iter().map(|one| {
        [
            one.at.to_string(),
            word(one.channel),
            some(one.from.as_deref()),
            escaped(&one.to),
            escaped(&one.status),
            some(one.subject.as_deref()),
            format!("<pre>{}</pre>", some(one.text.as_deref())),
        ]
    });
    let columns = ["At", "Channel", "From", "To", "Status", "Subject", "Text"];
    table(html, "Messages", columns, rows);
}

fn rules(html: &mut String, rules: &[FileRuleView]) {
    let rows = rules
        .iter()
        .map(|one| [escaped(&one.rule), escaped(&one.title), escaped(&one.source)]);
    table(
        html,
        "The rules that are named above",
        ["Rule", "What it is", "Source"],
        rows,
    );
}

/// `rows` are HTML already.
fn table<const N: usize>(html: &mut String, title: &str, columns: [&str; N], rows: impl Iterator<Item = [String; N]>) {
    let mut rows = rows.peekable();
    let _ = writeln!(html, "<h2>{title}</h2>");
    if rows.peek().is_none() {
        html.push_str("<p>None.</p>\n");
        return;
    }
    html.push_str("<table><thead><tr>");
    for column in columns {
        let _ = write!(html, "<th scope=\"col\">{column}</th>");
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for cell in row {
            let _ = write!(html, "<td>{cell}</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>\n");
}

fn some(text: Option<&str>) -> String {
    text.map(escaped).unwrap_or_default()
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Words of strangers turn no page around, and hide nothing on it.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => safe.push('\u{fffd}'),
            letter if letter.is_control() && letter != '\n' && letter != '\t' => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_strangers_words_is_markup() {
        assert_eq!(
            escaped("<script>alert('x & \"y\"')</script>\u{202e}\u{0}\n"),
            "&lt;script&gt;alert(&#39;x &amp; &quot;y&quot;&#39;)&lt;/script&gt;\u{fffd}\u{fffd}\n"
        );
    }

    #[test]
    fn a_table_without_rows_says_so() {
        let mut html = String::new();
        table(&mut html, "Calls", ["At"], std::iter::empty());
        assert_eq!(html, "<h2>Calls</h2>\n<p>None.</p>\n");
        table(&mut html, "Calls", ["At"], std::iter::once(["now".to_owned()]));
        assert!(
            html.ends_with("<th scope=\"col\">At</th></tr></thead><tbody>\n<tr><td>now</td></tr>\n</tbody></table>\n")
        );
    }
}
