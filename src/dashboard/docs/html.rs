//! Small pieces of the page, and reading the document without surprises. Whatever comes from the document is escaped here.
use serde_json::Value;

pub fn table(caption: &str, of: &str, rows: &str) -> String {
    let of = escape(of);
    let start = format!(
        "<table><caption>{caption} <span class=\"visually-hidden\">of {of}</span></caption>\
        <thead><tr><th scope=\"col\">Name</th><th scope=\"col\">Meaning</th></tr></thead><tbody>\n"
    );
    enclose(&start, rows, "</tbody></table>")
}

pub fn code(caption: &str, html: &str) -> String {
    format!("<figure><figcaption>{caption}</figcaption><pre><code>{html}</code></pre></figure>")
}

/// Nothing around nothing.
pub fn enclose(start: &str, inner: &str, end: &str) -> String {
    if inner.is_empty() {
        return String::new();
    }
    [start, inner, end].concat()
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A value as one would type it.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The entries of one of the small tables above.
pub fn entries(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.split(['\n', '|']).filter_map(|entry| entry.split_once(": "))
}

pub fn lookup(table: &'static str, name: &str) -> Option<&'static str> {
    entries(table).find(|entry| entry.0 == name).map(|entry| entry.1)
}

pub fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

/// A name or path that may wrap where a reader expects it.
pub fn breakable(name: &str) -> String {
    let name = escape(name).replace('/', "/<wbr>");
    name.replace('.', ".<wbr>").replace('_', "_<wbr>")
}

/// Text whose `backticks` mean code.
pub fn prose(text: &str) -> String {
    let mut html = escape(text);
    while html.matches('`').count() > 1 {
        html = html.replacen('`', "<code>", 1).replacen('`', "</code>", 1);
    }
    html
}
