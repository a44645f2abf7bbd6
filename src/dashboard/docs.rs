//! The API's reference page, rendered once from the OpenAPI document: no route, field or event can be forgotten in it.
//!
//! The page needs no script and no inline style, as the content policy asks. Whatever comes from the document goes
//! through `escape`: no description becomes markup.
mod html;
mod schema;

use crate::http::openapi::marks::SCOPE;
use html::{breakable, code, escape, list, lookup, members, plain, prose, table, text};
use schema::{fields, likely, resolve, row, sample};
use serde_json::Value;

/// The order of what can be done with one path.
const METHODS: &str = "post get patch put delete";
/// Levels of fields that are shown; ends schemas that contain themselves.
const DEPTH: usize = 8;

const REQUIRED: &str = " <span class=\"required\">required</span>";
const HEAD: &str = r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference · Callboard</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E
%3Crect width='32' height='32' rx='9' fill='%230b6b5a'/%3E
%3Cpath d='M9 13v6M16 8v16M23 12v8' stroke='%23fff' stroke-width='3.5' stroke-linecap='round'/%3E%3C/svg%3E">
<link rel="stylesheet" href="/assets/style.css">
<link rel="stylesheet" href="/assets/docs.css">
</head>
<body class="docs">
<a class="skip" href="#content">Skip to content</a>
<header class="top"><div class="top-row"><a class="brand" href="/">Callboard</a>
<nav aria-label="Main"><a href="/">API keys</a><a href="/docs" aria-current="page">Docs</a></nav>
<a class="download" href="/openapi.json">OpenAPI</a></div></header>
"##;
const BASICS: &str = r##"<dl class="basics">
<div><dt>Authentication</dt><dd>Send an API key from the dashboard with every request: <code>Authorization: Bearer
vk_test_…</code>. A <code>vk_test_</code> key works in the sandbox, a <code>vk_live_</code> key makes real calls;
neither sees what belongs to the other. Each operation names the scope that its key needs.</dd></div>
<div><dt>Errors</dt><dd>Every error has the shape shown here. <code>code</code> is for your program,
<code>message</code> for people; <code>param</code> names the field that is wrong, if one is,
<code>details</code> all of them, and <code>request_id</code> finds the request in the server’s log.</dd></div>
<div><dt>Lists</dt><dd>A list answers one page. While <code>has_more</code> is true, give <code>next_cursor</code> as
<code>cursor</code> to read on.</dd></div>
<div><dt>Repeating a request</dt><dd>Give each POST its own <code>Idempotency-Key</code> of up to 255 characters. The
same request with the same key has one effect and one answer, for 24 hours.</dd></div>
<div><dt>Rate limits</dt><dd>A key may send 50 requests a second, in bursts of up to 100. Beyond that the answer is
429: wait as many seconds as <code>Retry-After</code> says.</dd></div>
</dl>
"##;
const FIRST: &str = "curl \"$CALLBOARD_URL/v1/me\" \\\n  -H \"Authorization: Bearer $CALLBOARD_KEY\"";
const ERROR: &str = r#"{
  "error": {
    "code": "validation_failed",
    "message": "`limit` must be a number from 1 to 100, not `900`",
    "param": "limit",
    "details": [
      {
        "param": "limit",
        "code": "invalid_value",
        "message": "`limit` must be a number from 1 to 100, not `900`"
      }
    ],
    "request_id": "req_0199a3f05d2c7b41…"
  }
}"#;
const EVENTS: &str = r##"<p>Each event goes as a POST to every <a href="#webhook_endpoints">webhook endpoint</a> that
asks for its type. Answer with any 2xx status; anything else is tried again or refused. An event can come twice and
out of order; its <code>id</code> stays the same.</p>
<p>To check that an event is ours, compare <code>X-Webhook-Signature</code> with <code>sha256=</code> and the hex
HMAC-SHA256 of <code>X-Webhook-Timestamp</code>, a full stop and the raw body, keyed with the endpoint’s whole
<code>secret</code>. Refuse timestamps more than 300 seconds from your clock. The headers of Standard Webhooks
(<code>webhook-id</code>, <code>webhook-timestamp</code>, <code>webhook-signature</code>) are sent as well.</p>
"##;

pub fn render(document: &Value) -> String {
    let mut operations = Vec::new();
    for (path, item) in members(&document["paths"]) {
        for (method, spec) in members(item) {
            let tag = text(&spec["tags"][0]);
            operations.push(Operation {
                tag,
                method,
                path,
                spec,
            });
        }
    }
    // The document has its sections in the order in which a newcomer needs them.
    let tags = list(&document["tags"]);
    let rank = |tag| tags.iter().position(|known| known["name"] == tag).unwrap_or(usize::MAX);
    operations.sort_by_key(|it| (rank(it.tag), it.tag, it.path, METHODS.find(it.method)));

    let (mut links, mut main, mut tag) = (String::new(), basics(&document["info"]), "");
    for operation in &operations {
        if operation.tag != tag {
            tag = operation.tag;
            let (id, title) = (escape(tag), escape(&tag.replace('_', " ")));
            let known = tags.iter().find(|known| known["name"] == tag);
            let about = known.map_or(String::new(), |known| prose(text(&known["description"])));
            links += &format!("<li class=\"tag\"><a href=\"#{id}\">{title}</a></li>\n");
            main += &format!("<h2 id=\"{id}\">{title}</h2><p class=\"about\">{about}</p>\n");
        }
        links += &operation.link();
        main += &operation.article(document);
    }
    main += &events(document);
    format!(
        "{HEAD}<div class=\"frame\"><nav class=\"toc\" aria-label=\"Reference\"><ul>\n\
        <li class=\"tag\"><a href=\"#basics\">Basics</a></li>\n{links}\
        <li class=\"tag\"><a href=\"#webhook-events\">Webhook events</a></li></ul></nav>\n\
        <main id=\"content\" tabindex=\"-1\">{main}</main></div>\n</body>\n</html>\n"
    )
}

fn basics(info: &Value) -> String {
    let (name, version) = (escape(text(&info["title"])), escape(text(&info["version"])));
    let (about, first) = (prose(text(&info["description"])), code("First request", &escape(FIRST)));
    let error = code("Error", &escape(ERROR));
    format!(
        "<section id=\"basics\" class=\"unit\"><div><h1>{name} API <small>{version}</small></h1>\
        <p class=\"lede\">{about}</p>{BASICS}</div><div class=\"aside\">{first}{error}</div></section>\n"
    )
}

struct Operation<'a> {
    tag: &'a str,
    method: &'a str,
    path: &'a str,
    spec: &'a Value,
}

impl Operation<'_> {
    fn id(&self) -> String {
        escape(text(&self.spec["operationId"]))
    }

    fn badge(&self) -> String {
        let method = escape(self.method);
        format!("<span class=\"method {method}\">{}</span>", method.to_uppercase())
    }

    fn link(&self) -> String {
        let (id, badge, path) = (self.id(), self.badge(), breakable(self.path.trim_start_matches("/v1")));
        format!("<li><a href=\"#{id}\">{badge} <span>{path}</span></a></li>\n")
    }

    fn article(&self, document: &Value) -> String {
        let (id, badge, path, needs) = (self.id(), self.badge(), breakable(self.path), self.needs());
        let summary = prose(text(&self.spec["description"]));
        let (body, is_patch) = self.body(document);
        let name = format!("{} {}", self.method.to_uppercase(), self.path);
        let parameters = table("Path and query", &name, &self.parameters(document));
        let caption = if is_patch { "Merge patch" } else { "Body" };
        let mark = if is_patch { "" } else { REQUIRED };
        let takes = table(caption, &name, &fields(&body, "", mark));
        let answer = self.answer(document, &name);
        let curl = code("curl", &self.curl(&body, is_patch));
        format!(
            "<article id=\"{id}\" class=\"unit\"><div><h3><a href=\"#{id}\">{badge} <code>{path}</code></a></h3>\
            <p>{summary}</p><ul class=\"needs\">{needs}</ul>{parameters}{takes}{answer}</div>\
            <div class=\"aside\">{curl}</div></article>\n"
        )
    }

    /// What the caller must show, and which headers the operation knows.
    fn needs(&self) -> String {
        let needs = &self.spec["security"][0];
        let mut all = match (&self.spec[SCOPE], &needs["key"], &needs["session"]) {
            (Value::String(scope), ..) => format!("<li>Scope <code>{}</code></li>", escape(scope)),
            (_, Value::Array(_), _) => "<li>Any API key</li>".into(),
            (.., Value::Array(_)) => "<li>Dashboard session</li>".into(),
            _ => "<li>No key</li>".into(),
        };
        for header in list(&self.spec["parameters"]).iter().filter(|it| it["in"] == "header") {
            all += &format!("<li><code>{}</code></li>", escape(text(&header["name"])));
        }
        all
    }

    fn parameters(&self, document: &Value) -> String {
        let mut rows = String::new();
        for parameter in list(&self.spec["parameters"]).iter().filter(|it| it["in"] != "header") {
            let name = text(&parameter["name"]);
            let mut schema = resolve(document, &parameter["schema"], DEPTH);
            if let Some(about) = parameter.get("description") {
                schema["description"] = about.clone();
            }
            let mark = if parameter["required"] == true { REQUIRED } else { "" };
            rows += &row(name, &schema, mark);
        }
        rows
    }

    /// What the operation takes. A PATCH that does not say takes any part of what creates the object.
    fn body(&self, document: &Value) -> (Value, bool) {
        let is_patch = self.method == "patch" && self.spec.get("requestBody").is_none();
        let parent = self.path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let creation = &document["paths"][parent]["post"];
        let source = if is_patch { creation } else { self.spec };
        (content(document, &source["requestBody"]), is_patch)
    }

    /// The success. Its fields are folded away: they are many, and most readers come for the request.
    fn answer(&self, document: &Value, name: &str) -> String {
        let success = members(&self.spec["responses"]).find(|(status, _)| status.starts_with('2'));
        let Some((status, answer)) = success else {
            return String::new();
        };
        let meaning = lookup("200: OK|201: Created|204: No Content", status).unwrap_or_default();
        let title = format!("Answers <strong>{} {meaning}</strong>", escape(status));
        let rows = fields(&content(document, answer), "", "");
        if rows.is_empty() {
            return format!("<p class=\"answer\">{title}</p>");
        }
        let table = table("Fields of the answer", name, &rows);
        format!("<details class=\"answer\"><summary>{title}</summary>{table}</details>")
    }

    fn curl(&self, body: &Value, is_patch: bool) -> String {
        let kind = format!("{}_id", self.tag.trim_end_matches('s'));
        let fill = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            Some(name) => plain(&likely(if name == "id" { &kind } else { name }, &Value::Null, "")),
            None => part.to_owned(),
        };
        let mut path = self.path.split('/').map(fill).collect::<Vec<_>>().join("/");
        let needed = list(&self.spec["parameters"]).iter();
        for parameter in needed.filter(|it| it["in"] == "query" && it["required"] == true) {
            path += &format!("?{}=…", text(&parameter["name"]));
        }
        let verb = format!("-X {} ", self.method.to_uppercase()).replace("-X GET ", "");
        let mut lines = vec![escape(&format!("curl {verb}\"$CALLBOARD_URL{path}\""))];
        if self.spec["security"][0].get("key").is_some() {
            lines.push(escape("-H \"Authorization: Bearer $CALLBOARD_KEY\""));
        } else if self.tag == "dashboard" {
            lines.push("-b cookies.txt -c cookies.txt".into());
        }
        if self.spec["requestBody"]["content"].get("application/sdp").is_some() {
            lines.push(escape("-H \"Content-Type: application/sdp\" --data-binary @offer.sdp"));
        }
        if !body.is_null() {
            let mut body = body.clone();
            if is_patch {
                body["required"] = list(&body["required"]).iter().take(1).cloned().collect();
            }
            let example = example(&self.spec["requestBody"]).unwrap_or_else(|| sample(&body, "", "", 0));
            lines.push(escape("-H \"Content-Type: application/json\""));
            // An apostrophe would end the shell's quotes.
            lines.push(format!("-d '{}'", example.replace("&#39;", "'\\''")));
        }
        lines.join(" \\\n  ")
    }
}

fn events(document: &Value) -> String {
    let (mut index, mut articles) = (String::new(), String::new());
    for (name, item) in members(&document["webhooks"]) {
        let envelope = content(document, &item["post"]["requestBody"]);
        let (id, title, when) = (escape(name), breakable(name), prose(text(&item["post"]["summary"])));
        let data = table("Data", name, &fields(&envelope["properties"]["data"], "", ""));
        let example = example(&item["post"]["requestBody"]).unwrap_or_else(|| sample(&envelope, "", name, 0));
        let example = code("Envelope", &example);
        index += &format!("<li><a href=\"#event-{id}\">{title}</a></li>\n");
        articles += &format!(
            "<article id=\"event-{id}\" class=\"unit\"><div><h3><a href=\"#event-{id}\"><code>{title}</code></a></h3>\
            <p>{when}</p>{data}</div><div class=\"aside\">{example}</div></article>\n"
        );
    }
    format!("<h2 id=\"webhook-events\">Webhook events</h2>\n{EVENTS}<ul class=\"index\">{index}</ul>\n{articles}")
}

/// The schema of a request's or an answer's JSON.
fn content(document: &Value, of: &Value) -> Value {
    resolve(document, &of["content"]["application/json"]["schema"], DEPTH)
}

/// What the document shows of it.
fn example(of: &Value) -> Option<String> {
    let example = of["content"]["application/json"].get("example")?;
    serde_json::to_string_pretty(example).ok().map(|text| escape(&text))
}

#[cfg(test)]
#[path = "docs_tests.rs"]
mod tests;
