//! The console: one page, whose script asks the API for what it shows. No build makes its files: what is here is what is served.
//!
//! All files are under one address with the hash of them all in it. Browsers keep them for a year, and an update of the binary
//! is another address, so that no page ever mixes two versions.
use super::POLICY;
use crate::http::{
    error::{ApiError, ApiResult},
    extract::header_text,
};
use ::brotli::{BrotliCompress, enc::BrotliEncoderParams};
use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, VARY},
    web::{self, Bytes, Path},
};
use flate2::{Compression, write::GzEncoder};
use runtime::keyring::hex;
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeSet, HashMap},
    io::Write,
    sync::{LazyLock, OnceLock},
};

macro_rules! files { ($($name:literal)*) => {
    /// Below their folder, as pages name them.
    const FILES: &[(&str, &str)] = &[
        ("common.js", include_str!("common.js")),
        ("style.css", include_str!("style.css")),
        // A talk in the console is held by what holds it on a room's own page.
        ("room/room-line.js", include_str!("room/room-line.js")),
        ("room/room-sound.js", include_str!("room/room-sound.js")),
        $((concat!("console/", $name), include_str!(concat!("console/", $name)))),*
    ];
} }
files! {
    "api.js" "console.css" "dates.js" "difference.js" "form.js" "format.js" "graph.js" "html.js" "lists.js" "live.js"
    "main.js" "parts.js" "peaks.js" "place.js" "rows.js" "unsaved.js" "values.js" "words.js"
    "pages/account.js" "pages/agent.js" "pages/agent_form.js" "pages/agents.js" "pages/at_once.js" "pages/call.js"
    "pages/call_events.js" "pages/call_facts.js" "pages/calls.js" "pages/campaign.js" "pages/campaigns.js"
    "pages/compliance.js" "pages/consents.js" "pages/contacts.js" "pages/credits.js" "pages/csv.js" "pages/definition.js"
    "pages/deliveries.js" "pages/dnc.js" "pages/dnc_import.js" "pages/dry_run.js" "pages/endpoint_form.js"
    "pages/erasure.js" "pages/event_types.js" "pages/events.js" "pages/find.js" "pages/function_form.js" "pages/functions.js"
    "pages/hours.js" "pages/identity.js" "pages/imports.js" "pages/incoming.js" "pages/law.js" "pages/lines.js"
    "pages/live_call.js" "pages/mcp_tool.js" "pages/members.js"
    "pages/messages.js" "pages/new_campaign.js" "pages/new_room.js" "pages/new_voice.js" "pages/numbers.js"
    "pages/outlook.js" "pages/overview.js" "pages/pairs.js" "pages/parameters.js" "pages/person.js" "pages/pieces.js"
    "pages/recorder.js" "pages/recorder_worklet.js" "pages/recording.js" "pages/retention.js" "pages/rooms.js" "pages/rules.js"
    "pages/samples.js" "pages/segments.js" "pages/send_message.js" "pages/signature.js" "pages/speech.js" "pages/talk.js"
    "pages/timeline.js" "pages/transcript.js" "pages/trunk_settings.js" "pages/trunk_state.js" "pages/trunks.js"
    "pages/turns.js" "pages/upload.js" "pages/verified_numbers.js" "pages/verify.js" "pages/versions.js"
    "pages/voices.js" "pages/webhook.js" "pages/webhooks.js" "pages/who.js"
    "vendor/hooks.js" "vendor/htm.js" "vendor/preact.js" "vendor/signals-core.js" "vendor/signals.js"
    "vendor/uplot.css" "vendor/uplot.js" "vendor/wavesurfer.js"
}

/// Sheets of our own; and by its hash the one that `vendor/wavesurfer.js` writes into the page, for the height that `pages/recording.js`
/// gives a channel. When either changes, a browser says what it has become: the tests of the console fail with its words.
const WAVEFORM_STYLE: &str = "style-src 'self' 'sha256-GDz2FZP0i7VZaDhs1mgc43IRUXU2xajPIjvThHvZvbs='";

const MAIN: &str = "console/main.js";

/// A year: as long as anything may be kept.
const KEPT: &str = "public, max-age=31536000, immutable";
/// Of the files' hash, what is enough to tell versions apart.
const HASH: usize = 16;

struct File {
    kind: &'static str,
    text: String,
    /// Made when the first browser asks for it.
    brotli: OnceLock<Bytes>,
    gzip: OnceLock<Bytes>,
}

struct Console {
    hash: String,
    files: HashMap<&'static str, File>,
    /// By the name in the address: what stands there without an id, with one, and for something new. And what stands everywhere else.
    pages: HashMap<&'static str, Vec<String>>,
    page: String,
    policy: String,
}

static CONSOLE: LazyLock<Console> = LazyLock::new(|| {
    let mut digest = Sha256::new();
    for (name, text) in FILES {
        digest.update(name);
        digest.update([0]);
        digest.update(text);
    }
    let mut hash = hex(&digest.finalize());
    hash.truncate(HASH);
    let file = |(name, text): &(&'static str, &'static str)| {
        let kind = if name.ends_with(".css") {
            "text/css"
        } else {
            "text/javascript"
        };
        let file = File {
            kind,
            // The libraries are as they came: one of them writes its style by the letter that the policy knows.
            text: if name.contains("/vendor/") {
                (*text).to_owned()
            } else {
                bare(text)
            },
            brotli: OnceLock::new(),
            gzip: OnceLock::new(),
        };
        (*name, file)
    };
    let page = |module: Option<&str>| {
        let own = module.map(|module| format!("console/pages/{module}.js"));
        let all = [MAIN.to_owned()].into_iter().chain(own).collect();
        let preload = |name: &String| format!("<link rel=\"modulepreload\" href=\"{{assets}}/{name}\">");
        let modules: Vec<_> = with_imports(all).iter().map(preload).collect();
        let page = include_str!("console/index.html").replace("{modules}", &modules.join("\n  "));
        page.replace("{assets}", &format!("/assets/{hash}"))
    };
    Console {
        pages: pages()
            .map(|(name, modules)| (name, modules.into_iter().map(|module| page(Some(module))).collect()))
            .collect(),
        page: page(None),
        files: FILES.iter().map(file).collect(),
        hash,
        // Recordings are heard; and from the page's own memory (`blob:`) what a voice has just said, and samples before
        // they are sent.
        policy: format!("{POLICY}; media-src 'self' blob:").replace("style-src 'self'", WAVEFORM_STYLE),
    }
});

/// The pages that the script knows, each with the modules that it shows there: `PAGES` of `main.js`.
fn pages() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let table = include_str!("console/main.js").split("const PAGES = {\n").nth(1);
    let lines = table.unwrap_or_default().lines().take_while(|line| *line != "};");
    lines.filter_map(|line| {
        let (name, modules) = line.trim().split_once(": [")?;
        let modules = modules
            .split("at('")
            .skip(1)
            .filter_map(|module| module.split('\'').next());
        Some((name, modules.collect()))
    })
}

/// What a module imports at once, by its name: also what is not there.
fn imports(name: &str, text: &str) -> Vec<String> {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let asked = text.split("from '").skip(1).chain(text.split("from\"").skip(1));
    let asked = asked.filter_map(|asked| asked.split(['\'', '"']).next());
    // Else it is a word of the page's.
    let paths = asked.filter(|asked| asked.starts_with('.'));
    let resolve = |asked: &str| {
        let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in asked.split('/') {
            match part {
                "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        parts.join("/")
    };
    paths.map(resolve).collect()
}

/// These modules and all that they import, so that a browser asks for them at once and not one after the other as they name each other.
fn with_imports(modules: Vec<String>) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    let mut next = modules;
    while let Some(name) = next.pop() {
        let file = FILES.iter().find(|(known, _)| *known == name);
        if let Some((_, text)) = file.filter(|_| !known.contains(&name)) {
            next.extend(imports(&name, text));
            known.insert(name);
        }
    }
    known
}

/// Without what only its readers here need: lines that are comments, and what lines begin with.
fn bare(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut is_comment = false;
    for line in text.lines().map(str::trim) {
        let begins = line.starts_with("/*");
        let is_left_out = is_comment || begins || line.starts_with("//") || line.is_empty();
        is_comment = (is_comment || begins) && !line.ends_with("*/");
        if !is_left_out {
            bare.push_str(line);
            bare.push('\n');
        }
    }
    bare
}

impl File {
    /// In the best of the encodings that its reader takes; `None`: as it is. Browsers take brotli over TLS and on their own machine.
    fn encoded(&self, accepted: &str) -> Option<(&'static str, Bytes)> {
        let takes = |name: &str| accepted.split(',').any(|one| one.trim() == name);
        // Into memory, where nothing fails; half a file would not be taken for a whole one.
        let (name, bytes) = if takes("br") {
            ("br", self.brotli.get_or_init(|| brotli(&self.text).unwrap_or_default()))
        } else if takes("gzip") {
            ("gzip", self.gzip.get_or_init(|| gzip(&self.text).unwrap_or_default()))
        } else {
            return None;
        };
        (!bytes.is_empty()).then(|| (name, bytes.clone()))
    }
}

fn gzip(text: &str) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    encoder.finish().map(Bytes::from)
}

fn brotli(text: &str) -> std::io::Result<Bytes> {
    let best = BrotliEncoderParams::default();
    let mut bytes = Vec::new();
    BrotliCompress(&mut text.as_bytes(), &mut bytes, &best)?;
    Ok(bytes.into())
}

/// GET /t/…: the same page for every address, whose script reads the rest, but for what it is told to load at once.
pub async fn page(path: Path<String>) -> HttpResponse {
    let mut parts = path.split('/').skip(2).filter(|part| !part.is_empty());
    let name = parts.next().unwrap_or("overview");
    let kind = match parts.next() {
        None => 0,
        Some("new") => 2,
        Some(_) => 1,
    };
    let own = CONSOLE.pages.get(name).and_then(|pages| pages.get(kind));
    HttpResponse::Ok()
        .insert_header((CONTENT_SECURITY_POLICY, CONSOLE.policy.as_str()))
        .content_type("text/html; charset=utf-8")
        .body(own.unwrap_or(&CONSOLE.page).as_str())
}

/// GET /assets/{hash}/…
pub async fn asset(request: HttpRequest, path: Path<(String, String)>) -> ApiResult<HttpResponse> {
    let (hash, name) = path.into_inner();
    let found = CONSOLE.files.get(&*name).filter(|_| hash == CONSOLE.hash);
    let file = found.ok_or_else(|| ApiError::not_found("no such asset; reload the page"))?;
    let mut answer = HttpResponse::Ok();
    answer
        .insert_header((CACHE_CONTROL, KEPT))
        .insert_header((VARY, "Accept-Encoding"))
        .content_type(format!("{}; charset=utf-8", file.kind));
    let accepted = header_text(&request, "accept-encoding")
        .unwrap_or_default()
        .into_owned();
    let encoded = web::block(move || file.encoded(&accepted)).await;
    Ok(match encoded.ok().flatten() {
        Some((name, bytes)) => answer.insert_header((CONTENT_ENCODING, name)).body(bytes),
        None => answer.body(file.text.as_str()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_a_page_names_is_served() {
        for (name, text) in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            // Pages are loaded by their names.
            for page in text.split(" at('").skip(1).chain(text.split("[at('").skip(1)) {
                let page = page.split('\'').next().unwrap();
                assert!(
                    CONSOLE.files.contains_key(&*format!("console/pages/{page}.js")),
                    "{name}: {page}"
                );
            }
            for asked in imports(name, text) {
                assert!(CONSOLE.files.contains_key(&*asked), "{name}: {asked}");
            }
        }
    }

    #[test]
    fn a_page_asks_at_once_for_all_that_it_imports() {
        let overview = &CONSOLE.pages["overview"][0];
        for module in ["main", "vendor/preact", "pages/overview", "graph", "vendor/uplot"] {
            let link = format!(
                "<link rel=\"modulepreload\" href=\"/assets/{}/console/{module}.js\">",
                CONSOLE.hash
            );
            assert_eq!(overview.matches(&link).count(), 1, "{module}: {overview}");
        }
        assert!(
            !CONSOLE.page.contains("overview") && !CONSOLE.page.contains('{'),
            "{}",
            CONSOLE.page
        );
        let uplot = "console/vendor/uplot.js".to_owned();
        let kinds = |page: &str| CONSOLE.pages[page].len();
        assert_eq!((CONSOLE.pages.len(), kinds("overview"), kinds("campaigns")), (20, 1, 3));
        assert!(CONSOLE.pages["campaigns"][2].contains("/pages/new_campaign.js"));
        assert!(
            !with_imports(vec![MAIN.to_owned()]).contains(&uplot),
            "who looks at no graph loads none"
        );
    }

    /// What the issue of the console allows is 250 KB.
    #[test]
    fn all_of_it_is_small() {
        let sizes = CONSOLE
            .files
            .values()
            .map(|file| file.encoded("gzip, br").unwrap().1.len());
        let all: usize = sizes.sum();
        assert!((10_000..250_000).contains(&all), "{all}");
    }

    #[test]
    fn what_is_left_out_are_comments_and_nothing_else() {
        let text = "// a\n/* b\n   c */\n/** d */\n  x = 'http://e'; // f\n\n  /* g */ h\n";
        assert_eq!(bare(text), "x = 'http://e'; // f\n");
        for (name, text) in FILES.iter().filter(|(name, _)| !name.contains("/vendor/")) {
            // What stands behind a comment on its line would go with it.
            let lost = |line: &&str| {
                line.trim().starts_with("/*") && line.trim().contains("*/") && !line.trim().ends_with("*/")
            };
            assert_eq!(text.lines().find(lost), None, "{name}");
        }
    }

    #[test]
    fn each_encoding_is_the_same_file() {
        let file = &CONSOLE.files["console/words.js"];
        let (name, bytes) = file.encoded("gzip, deflate, br").unwrap();
        let mut plain = Vec::new();
        ::brotli::BrotliDecompress(&mut &*bytes, &mut plain).unwrap();
        assert_eq!((name, &*plain), ("br", file.text.as_bytes()));
        let (name, bytes) = file.encoded("gzip").unwrap();
        let mut plain = String::new();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&*bytes), &mut plain).unwrap();
        assert_eq!((name, &plain), ("gzip", &file.text));
        assert!(file.encoded("identity").is_none());
    }
}
