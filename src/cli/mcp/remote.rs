//! The API of a server, asked over HTTP.
use crate::{
    cli::listen::client,
    error::CannotStart,
    mcp::api::{Api, ApiAnswer, ApiRequest, Method},
};
use futures_util::future::LocalBoxFuture;
use reqwest::{Client, Url, header::RETRY_AFTER};
use std::time::Duration;
use zeroize::Zeroizing;

/// For a preflight, which reads a list of any length.
const TIMEOUT: Duration = Duration::from_secs(120);

pub struct Remote {
    client: Client,
    /// Without a slash at the end.
    url: String,
    key: Zeroizing<String>,
}

impl Remote {
    pub fn new(mut url: Url, key: &str) -> Result<Self, CannotStart> {
        url.set_query(None);
        url.set_fragment(None);
        Ok(Remote {
            client: client::build()?,
            url: url.as_str().trim_end_matches('/').to_owned(),
            key: Zeroizing::new(key.to_owned()),
        })
    }

    async fn asked(&self, asked: &ApiRequest) -> reqwest::Result<ApiAnswer> {
        let url = format!("{}{}", self.url, asked.target);
        let request = match asked.method {
            Method::Get => self.client.get(url),
            Method::Post => self.client.post(url),
        };
        let mut response = request.bearer_auth(&*self.key).timeout(TIMEOUT).send().await?;
        let retry_after = response.headers().get(RETRY_AFTER);
        let mut answer = ApiAnswer {
            status: response.status().as_u16(),
            retry_after: retry_after.and_then(|value| value.to_str().ok()?.parse().ok()),
            ..ApiAnswer::default()
        };
        while let Some(piece) = response.chunk().await? {
            let room = asked.most - answer.body.len();
            answer.body.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                answer.is_cut = true;
                break;
            }
        }
        Ok(answer)
    }

    /// What a person can do about it.
    fn words(&self, error: &reqwest::Error) -> String {
        match error {
            error if client::is_refused(error) => {
                format!(
                    "nothing listens at {}: is the server running, and CALLBOARD_URL right?",
                    self.url
                )
            }
            error if error.is_timeout() => format!("no complete answer from {} in {} s", self.url, TIMEOUT.as_secs()),
            error => format!("{} cannot be reached: {}", self.url, client::root_cause(error)),
        }
    }
}

impl Api for Remote {
    fn send<'a>(&'a self, request: &'a ApiRequest) -> LocalBoxFuture<'a, Result<ApiAnswer, String>> {
        Box::pin(async move { self.asked(request).await.map_err(|error| self.words(&error)) })
    }
}
