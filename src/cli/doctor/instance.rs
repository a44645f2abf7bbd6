//! Which Callboard is it that answers?

/// Bytes of an answer that are read: it is shorter.
const LONGEST: usize = 4096;

/// What it calls itself in its answer to `GET /healthz`; empty: it is of a version that does not. `None`: it is no Callboard.
pub(super) async fn named(mut answer: reqwest::Response) -> Option<String> {
    if !answer.status().is_success() || !answer.headers().contains_key("x-request-id") {
        return None;
    }
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.ok()? {
        if body.len() + piece.len() > LONGEST {
            return None;
        }
        body.extend_from_slice(&piece);
    }
    let said: serde_json::Value = serde_json::from_slice(&body).ok()?;
    Some(said["instance"].as_str().unwrap_or_default().to_owned())
}
