//! Conversion of a call's arguments to a request.

use agent_core::{Error, Result, ToolRequest};
use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use url::Url;

use super::{
    body::Form,
    operation::Operation,
    place::{Place, Style},
};
use crate::{
    arguments::numbers,
    http::{Call, encoded},
};

/// Maximum length of an idempotency key that is sent unchanged.
const LONGEST_KEY: usize = 200;

/// Pairs of unescaped names and URL-encoded values.
type Pairs = Vec<(String, String)>;

impl Operation {
    /// Builds the request of a call.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if an argument is invalid at its location.
    pub(super) fn request(&self, req: &ToolRequest) -> Result<Call> {
        let none = Map::new();
        let args = req.args.as_object().unwrap_or(&none);
        let (mut headers, mut query, mut cookies, mut path) =
            (HeaderMap::new(), Pairs::new(), Pairs::new(), self.path.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/*;q=0.9, */*;q=0.1"));
        for parameter in &self.parameters {
            let (name, style) = (&parameter.name, parameter.style);
            let Some(value) = args.get(&parameter.argument).filter(|value| !value.is_null()) else { continue };
            match parameter.place {
                Place::Path => path = path.replace(&format!("{{{name}}}"), &segment(name, style, value)?),
                // A field of an object must not occupy the location of a secret.
                Place::Query => query.extend(style.pairs(name, value).into_iter().filter(|(name, _)| {
                    !self.credentials.iter().any(|credential| credential.fills(Place::Query, name))
                })),
                Place::Cookie => cookies.push((name.clone(), style.escaped(value))),
                Place::Header => {
                    let name = HeaderName::from_bytes(name.as_bytes()).expect("the name was looked at");
                    headers.insert(name, header(&parameter.argument, &style.joined(value))?);
                }
            }
        }
        if let Some(name) = &self.idempotency {
            headers.insert(name, HeaderValue::from_str(&key(&req.idempotency_key())).expect("a key of plain letters"));
        }
        let body = self.written(numbers::marked(&self.schema, &req.args).as_object().unwrap_or(&none), &mut headers)?;
        for credential in &self.credentials {
            credential.put(&mut headers, &mut query, &mut cookies);
        }
        if !cookies.is_empty() {
            let all: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let mut value = header("cookie", &all.join("; "))?;
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
        let url = self.url(&path, &query)?;
        Ok(Call { method: self.method.clone(), url, headers, body })
    }

    /// Builds the URL, which always stays on the server, whatever the arguments are.
    fn url(&self, path: &str, query: &Pairs) -> Result<Url> {
        if path.split('/').any(|segment| matches!(segment, "." | "..")) {
            return Err(Error::tool("'.' and '..' cannot stand in a path: give another value"));
        }
        if let Some(name) = path.split_once('{').and_then(|(_, rest)| Some(rest.split_once('}')?.0)) {
            return Err(Error::tool(format!("'{name}' is missing, which is a part of the path")));
        }
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{}", self.base.path().trim_end_matches('/'), path.trim_start_matches('/')));
        url.set_fragment(None);
        if !query.is_empty() {
            url.set_query(Some(&form(query)));
        }
        Ok(url)
    }

    fn written(&self, args: &Map<String, Value>, headers: &mut HeaderMap) -> Result<Option<Vec<u8>>> {
        let Some(body) = &self.body else { return Ok(None) };
        let value = match &body.fields {
            None => args.get("body").cloned(),
            Some(fields) => {
                let given: Map<_, _> = fields
                    .iter()
                    .filter_map(|(argument, name)| Some((name.clone(), args.get(argument)?.clone())))
                    .collect();
                (body.required || !given.is_empty()).then_some(Value::Object(given))
            }
        };
        let Some(value) = value else { return Ok(None) };
        let (mime, bytes) = match &body.form {
            Form::Json(mime) => (
                mime.as_str(),
                numbers::to_json(&value)
                    .map_err(|e| Error::tool("the body cannot be written as JSON").with_source(e))?,
            ),
            Form::Text(mime) => (mime.as_str(), Style::Commas.joined(&value)),
            Form::Urlencoded => {
                let fields =
                    value.as_object().ok_or_else(|| Error::tool("'body' must be an object: it is sent as a form"))?;
                let pairs = fields.iter().flat_map(|(name, value)| Style::Exploded.pairs(name, &flat(value)));
                ("application/x-www-form-urlencoded", form(&pairs.collect()))
            }
        };
        headers.insert(CONTENT_TYPE, header("the body's type", mime)?);
        Ok(Some(bytes.into_bytes()))
    }
}

/// Serialises an object within a form as JSON, as OpenAPI specifies.
fn flat(value: &Value) -> Value {
    if value.is_object() { Value::String(value.to_string()) } else { value.clone() }
}

/// Encodes pairs as a query or a form.
fn form(pairs: &Pairs) -> String {
    pairs.iter().map(|(name, value)| format!("{}={value}", encoded(name))).collect::<Vec<_>>().join("&")
}

/// Encodes a value in a path. An empty value is rejected, since it would change the path.
fn segment(name: &str, style: Style, value: &Value) -> Result<String> {
    match style.joined(value).as_str() {
        "" => Err(Error::tool(format!("'{name}' is empty, and it is a part of the path: give a value"))),
        value @ ("." | "..") => Err(Error::tool(format!("'{name}' cannot be '{value}': give another value"))),
        _ => Ok(style.escaped(value)),
    }
}

fn header(argument: &str, value: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(value).map_err(|e| {
        Error::tool(format!("'{argument}' holds a line break or the like, which no header can: give another value"))
            .with_source(e)
    })
}

/// Converts the idempotency key of a call to a header value.
fn key(key: &str) -> String {
    let plain = key.len() <= LONGEST_KEY && key.bytes().all(|byte| byte.is_ascii_graphic());
    if plain { key.to_owned() } else { Sha256::digest(key).iter().map(|byte| format!("{byte:02x}")).collect() }
}
