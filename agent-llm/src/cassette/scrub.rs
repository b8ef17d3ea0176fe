//! Redaction of secrets in exchanges.

use bytes::Bytes;
use http::{Request, Uri};
use serde_json::Value;

use super::exchange::{Asked, Content};
use crate::redact::{REDACTED, Redactor};

/// Replacement for a secret in a URL, where brackets are not allowed.
const REDACTED_IN_URL: &str = "redacted";

/// Names of fields that hold secrets, in lower case and without `-` and `_`.
const FIELDS: [&str; 10] = [
    "apikey",
    "xapikey",
    "authorization",
    "authorizationtoken",
    "accesstoken",
    "refreshtoken",
    "clientsecret",
    "password",
    "privatekey",
    "secretkey",
];

/// Further names of query parameters that hold secrets, matched at the end of the name to include
/// signed URLs.
const QUERY: [&str; 6] = ["key", "token", "sig", "signature", "credential", "secret"];

/// Redacts secrets.
#[derive(Debug, Default)]
pub(super) struct Scrubber {
    pub(super) redactor: Redactor,
    /// Further field names, in the form of [`FIELDS`].
    fields: Vec<String>,
}

impl Scrubber {
    pub(super) fn new(secrets: &[String], fields: &[String]) -> Self {
        let mut redactor = Redactor::default();
        secrets.iter().for_each(|secret| redactor.learn(secret));
        Self { redactor, fields: fields.iter().map(|name| plain(name)).collect() }
    }

    /// Returns the request without secrets, and registers the keys in its head for its answer.
    pub(super) fn asked(&mut self, request: &Request<Bytes>) -> Asked {
        self.redactor.learn_headers(request.headers());
        if let Ok(body) = serde_json::from_slice(request.body()) {
            self.learn_headers_in(&body);
        }
        let url = self.url(request.uri());
        Asked { method: request.method().to_string(), url, body: self.body(&[request.body().clone()]) }
    }

    /// Registers headers that the provider should send to a tool server.
    fn learn_headers_in(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_object().filter(|_| name == "headers") {
                        Some(headers) => headers.values().filter_map(Value::as_str).for_each(|header| {
                            self.redactor.learn(header.strip_prefix("Bearer ").unwrap_or(header));
                        }),
                        None => self.learn_headers_in(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn_headers_in(item)),
            _ => {}
        }
    }

    fn url(&mut self, uri: &Uri) -> String {
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let host = match authority.rsplit_once('@') {
            Some((_, host)) => format!("{REDACTED_IN_URL}@{host}"),
            None => authority.to_owned(),
        };
        let fields =
            uri.query().into_iter().flat_map(|query| query.split('&')).map(|field| match field.split_once('=') {
                Some((name, value)) if self.is_secret_in_query(name) => {
                    self.redactor.learn(value);
                    format!("{name}={REDACTED_IN_URL}")
                }
                _ => field.to_owned(),
            });
        let fields: Vec<_> = fields.collect();
        let query = if fields.is_empty() { String::new() } else { format!("?{}", fields.join("&")) };
        let scheme = uri.scheme_str().map(|scheme| format!("{scheme}://")).unwrap_or_default();
        self.redactor.redact(&format!("{scheme}{host}{}{query}", uri.path())).into_owned()
    }

    /// Returns the body without secrets, including secrets that span two chunks.
    pub(super) fn body(&self, chunks: &[Bytes]) -> Option<Content> {
        let content = Content::of(self.redacted(chunks))?;
        let Content::Json(json) = &content else { return Some(content) };
        // The JSON is only serialised again if a field holds a secret, which is rare.
        let mut value: Value = serde_json::from_str(json.get()).unwrap_or_default();
        if self.scrub_fields(&mut value) > 0 { Content::of(vec![value.to_string().into()]) } else { Some(content) }
    }

    fn redacted(&self, chunks: &[Bytes]) -> Vec<Vec<u8>> {
        let whole = chunks.concat();
        let secrets = self.redactor.find(&whole);
        let (mut at, mut secrets) = (0, secrets.iter().peekable());
        let mut clean = |chunk: &Bytes| {
            let (mut out, end) = (Vec::with_capacity(chunk.len()), at + chunk.len());
            while at < end {
                match secrets.peek() {
                    Some(secret) if secret.start <= at => {
                        if secret.start == at {
                            out.extend_from_slice(REDACTED.as_bytes());
                        }
                        at = secret.end.min(end);
                        if at == secret.end {
                            secrets.next();
                        } else {
                            break; // the rest of it is in the next chunk
                        }
                    }
                    next => {
                        let plain = next.map_or(end, |secret| secret.start.min(end));
                        out.extend_from_slice(&whole[at..plain]);
                        at = plain;
                    }
                }
            }
            at = end;
            out
        };
        chunks.iter().map(&mut clean).collect()
    }

    /// Returns the number of redacted texts.
    fn scrub_fields(&self, value: &mut Value) -> usize {
        match value {
            Value::Object(fields) => {
                let scrubbed = fields.iter_mut().map(|(name, value)| {
                    if value.is_string() && value != REDACTED && self.is_secret(name) {
                        *value = REDACTED.into();
                        return 1;
                    }
                    self.scrub_fields(value)
                });
                scrubbed.sum()
            }
            Value::Array(items) => items.iter_mut().map(|item| self.scrub_fields(item)).sum(),
            _ => 0,
        }
    }

    fn is_secret(&self, name: &str) -> bool {
        let name = plain(name);
        FIELDS.contains(&name.as_str()) || self.fields.contains(&name)
    }

    fn is_secret_in_query(&self, name: &str) -> bool {
        self.is_secret(name) || QUERY.iter().any(|end| plain(name).ends_with(end))
    }
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}
