//! HTTP client for search engine APIs.

use std::time::Duration;

use agent_core::{Error, Result, Retry, tool::Secret};
use reqwest::{StatusCode, header::HeaderValue};
use serde_json::Value;
use url::Url;

use super::Hit;
use crate::http::{AddressPolicy, Call, Exchange, Http, TooMuch, redacted};

/// Maximum size of a response in bytes.
const MOST_BYTES: usize = 4 << 20;
/// Timeout of a search.
const LONGEST: Duration = Duration::from_secs(20);
/// Maximum of bytes of an engine's error that the model sees.
const ERROR_TEXT: usize = 300;

/// Server of a search engine. The application chose it, so every address is allowed.
#[derive(Clone, Debug)]
pub(super) struct Api {
    name: &'static str,
    pub(super) url: Url,
    http: Http,
    pub(super) key: Option<Secret>,
}

impl Api {
    pub(super) fn new(name: &'static str, url: &str) -> Result<Self> {
        let http = Http::new(AddressPolicy::anywhere(), super::super::USER_AGENT)?;
        Ok(Self { name, url: parsed(name, url)?, http, key: None })
    }

    pub(super) fn with_key(name: &'static str, url: &str, key: Secret) -> Result<Self> {
        let is_header = HeaderValue::from_str(key.expose()).is_ok();
        if key.expose().trim().is_empty() || !is_header {
            return Err(Error::config(format!("the key for {name} is empty or holds what no key holds")));
        }
        Ok(Self { key: Some(key), ..Self::new(name, url)? })
    }

    /// Sets another base address.
    pub(super) fn at(&mut self, url: &str) -> Result<()> {
        self.url = parsed(self.name, url)?;
        Ok(())
    }

    /// Returns a header value with the key.
    pub(super) fn key_header(&self, prefix: &str) -> HeaderValue {
        let key = self.key.as_ref().map_or("", |key| key.expose());
        let value = HeaderValue::from_str(&format!("{prefix}{key}"));
        let mut value = value.expect("the key was looked at when it was given");
        value.set_sensitive(true);
        value
    }

    /// Sends a request and parses the JSON response.
    pub(super) async fn json(&self, call: Call) -> Result<Value> {
        let bytes = self.bytes(call).await?.1;
        let name = self.name;
        serde_json::from_slice(&bytes).map_err(|e| {
            let message = format!("{name} answered something that is not its protocol: search in another way");
            Error::tool(message).with_source(e)
        })
    }

    /// Sends a request; returns the success status and the body.
    pub(super) async fn bytes(&self, call: Call) -> Result<(StatusCode, Vec<u8>)> {
        let late = |_| Err(self.failed("did not answer in time").with_retry(Retry::Temporary(None)));
        tokio::time::timeout(LONGEST, self.exchange(call)).await.unwrap_or_else(late)
    }

    async fn exchange(&self, call: Call) -> Result<(StatusCode, Vec<u8>)> {
        let exchange = self.http.send(call).await?;
        let status = exchange.status;
        if !status.is_success() {
            return Err(self.refused(exchange).await);
        }
        let unread = |why| {
            let what = match why {
                TooMuch::Large => "answered more than can be read",
                TooMuch::Broken(_) | TooMuch::Encoding(_) => "sent an answer that is damaged",
            };
            self.failed(what).with_retry(Retry::Temporary(None))
        };
        Ok((status, exchange.body.read(MOST_BYTES).await.map_err(unread)?))
    }

    async fn refused(&self, exchange: Exchange) -> Error {
        let (status, retry) = (exchange.status, exchange.retry());
        let advice = match status.as_u16() {
            401 | 403 => "it refuses the key, which the model cannot change: tell the user, and go on without a search",
            402 | 432 | 433 => "its allowance is used up: tell the user, and go on without a search",
            429 => "it is asked too often: wait, or search for less",
            400 | 422 => "it refuses the query: write a shorter and simpler one",
            _ => "try it later, or go on without a search",
        };
        let said = exchange.body.beginning(ERROR_TEXT * 4).await;
        let secrets: Vec<_> = self.key.iter().map(Secret::expose).collect();
        let said = redacted(&said, &secrets).split_whitespace().collect::<Vec<_>>().join(" ");
        let said = crate::text::cut(&said, ERROR_TEXT);
        let said = if said.is_empty() { String::new() } else { format!("; it says: {said:?}") };
        Error::tool(format!("{} answered {status}: {advice}{said}", self.name)).with_retry(retry)
    }

    /// Returns an error of this engine.
    pub(super) fn failed(&self, what: &str) -> Error {
        Error::tool(format!("{} {what}: try it later, or go on without a search", self.name))
    }
}

fn parsed(name: &str, url: &str) -> Result<Url> {
    // The address may hold a password, so it is not repeated.
    let wrong = || {
        let example = "write one such as https://search.example.org, without a user name or a password";
        Error::config(format!("this is not an address for {name}: {example}"))
    };
    let parsed = Url::parse(url).map_err(|_| wrong())?;
    let is_plain = parsed.username().is_empty() && parsed.password().is_none();
    if is_plain && matches!(parsed.scheme(), "http" | "https") { Ok(parsed) } else { Err(wrong()) }
}

/// Field names of a hit in an engine's JSON.
pub(super) struct Fields {
    pub(super) snippet: &'static str,
    pub(super) date: &'static str,
}

/// Converts a list to hits. Entries without an address are skipped.
pub(super) fn hits(list: &Value, fields: &Fields, most: usize) -> Vec<Hit> {
    let text =
        |hit: &Value, field: &str| hit.get(field).and_then(Value::as_str).map(plain).filter(|text| !text.is_empty());
    let hit = |hit: &Value| {
        let url = hit.get("url")?.as_str()?.to_owned();
        Some(Hit {
            title: text(hit, "title").unwrap_or_default(),
            url,
            snippet: text(hit, fields.snippet).unwrap_or_default(),
            date: text(hit, fields.date),
        })
    };
    list.as_array().into_iter().flatten().filter_map(hit).take(most).collect()
}

/// Removes the tags and entities with which engines highlight matches.
fn plain(text: &str) -> String {
    let mut plain = text.to_owned();
    for (marked, bare) in [("<strong>", ""), ("</strong>", ""), ("<b>", ""), ("</b>", ""), ("<em>", ""), ("</em>", "")]
    {
        plain = plain.replace(marked, bare);
    }
    for (entity, letter) in
        [("&#x27;", "'"), ("&#39;", "'"), ("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")]
    {
        plain = plain.replace(entity, letter);
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
