//! The console: one page, whose script asks the API for what it shows. No build makes its files: what is here is what is served.
//!
//! All files are under one address with the hash of them all in it. Browsers keep them for a year, and an update of the binary
//! is another address, so that no page ever mixes two versions.
use super::POLICY;
use crate::http::error::{ApiError, ApiResult};
use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, VARY},
    web::{Bytes, Path},
};
use flate2::{Compression, write::GzEncoder};
use runtime::keyring::hex;
use sha2::{Digest, Sha256};
use std::{collections::HashMap, io::Write, sync::LazyLock};

macro_rules! files { ($($name:literal)*) => {
    /// Below their folder, as pages name them.
    const FILES: &[(&str, &str)] = &[
        ("common.js", include_str!("common.js")),
        ("style.css", include_str!("style.css")),
        $((concat!("console/", $name), include_str!(concat!("console/", $name)))),*
    ];
} }
files! {
    "api.js" "console.css" "format.js" "html.js" "live.js" "main.js" "parts.js" "place.js" "words.js"
    "pages/call.js" "pages/calls.js" "pages/campaign.js" "pages/campaigns.js" "pages/overview.js"
    "vendor/hooks.js" "vendor/htm.js" "vendor/preact.js" "vendor/signals.js" "vendor/signals-core.js"
}

/// A year: as long as anything may be kept.
const KEPT: &str = "public, max-age=31536000, immutable";
/// Of the files' hash, what is enough to tell versions apart.
const HASH: usize = 16;

struct File {
    kind: &'static str,
    text: &'static str,
    zipped: Bytes,
}

struct Console {
    hash: String,
    files: HashMap<&'static str, File>,
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
        let (text, zipped) = (*text, zip(text.as_bytes()));
        (*name, File { kind, text, zipped })
    };
    let page = include_str!("console/index.html").replace("{assets}", &format!("/assets/{hash}"));
    Console {
        files: FILES.iter().map(file).collect(),
        hash,
        page,
        // Recordings are heard.
        policy: format!("{POLICY}; media-src 'self'"),
    }
});

fn zip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Into memory, where nothing fails; half a file would not be taken for a whole one.
    let zipped = encoder.write_all(bytes).and_then(|()| encoder.finish());
    zipped.unwrap_or_default().into()
}

/// GET /t/…: the same page for every address; its script reads the rest.
pub async fn page() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_SECURITY_POLICY, CONSOLE.policy.as_str()))
        .content_type("text/html; charset=utf-8")
        .body(CONSOLE.page.as_str())
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
    let accepted = request
        .headers()
        .get(ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok());
    let takes_gzip = accepted.is_some_and(|accepted| accepted.split(',').any(|one| one.trim() == "gzip"));
    Ok(match takes_gzip && !file.zipped.is_empty() {
        true => answer
            .insert_header((CONTENT_ENCODING, "gzip"))
            .body(file.zipped.clone()),
        false => answer.body(file.text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_a_page_names_is_served() {
        for (name, text) in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
            for asked in text.split("from '").skip(1).chain(text.split("from\"").skip(1)) {
                let asked = asked.split(['\'', '"']).next().unwrap();
                let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
                for part in asked.split('/') {
                    match part {
                        "." => {}
                        ".." => drop(parts.pop()),
                        part => parts.push(part),
                    }
                }
                assert!(CONSOLE.files.contains_key(&*parts.join("/")), "{name}: {asked}");
            }
        }
    }

    /// What the issue of the console allows is 250 KB.
    #[test]
    fn all_of_it_is_small() {
        let zipped: usize = CONSOLE.files.values().map(|file| file.zipped.len()).sum();
        assert!((10_000..250_000).contains(&zipped), "{zipped}");
    }
}
