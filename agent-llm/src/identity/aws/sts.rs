//! Client of AWS STS, which issues credentials of a role.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use agent_core::{Error, ErrorKind, Result, Retry};
use aws_credential_types::Credentials as Keys;
use aws_smithy_types::date_time::{DateTime, Format};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use quick_xml::{Reader, events::Event};

use super::{machine::Machine, sign::sign};
use crate::{error::bounded, wire::endpoint::percent_encoded};

/// Region that signs requests to the global endpoint.
const OF_ALL: &str = "us-east-1";

/// A role to assume.
pub(super) struct Role {
    pub(super) arn: String,
    pub(super) session: Option<String>,
    pub(super) external_id: Option<String>,
}

pub(super) struct Sts<'a> {
    machine: &'a Machine,
    region: Option<String>,
}

impl<'a> Sts<'a> {
    pub(super) fn new(machine: &'a Machine, region: Option<String>) -> Self {
        Self { machine, region }
    }

    /// Assumes a role with an identity token.
    pub(super) async fn with_token(&self, role: &Role, token: &str) -> Result<Keys> {
        let request = self.request("AssumeRoleWithWebIdentity", role, &[("WebIdentityToken", token)])?;
        self.keys(role, request).await
    }

    /// Assumes a role with credentials.
    pub(super) async fn with_keys(&self, role: &Role, keys: &Keys) -> Result<Keys> {
        let id = role.external_id.as_deref().map(|id| ("ExternalId", id));
        let mut request = self.request("AssumeRole", role, id.as_slice())?;
        sign(&mut request, keys, self.region.as_deref().unwrap_or(OF_ALL), "sts", SystemTime::now())?;
        self.keys(role, request).await
    }

    fn request(&self, action: &str, role: &Role, more: &[(&str, &str)]) -> Result<Request<Bytes>> {
        let own = ["AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"].into_iter().find_map(|name| self.machine.variable(name));
        let address = own.unwrap_or_else(|| match &self.region {
            Some(region) if region.starts_with("cn-") => format!("https://sts.{region}.amazonaws.com.cn/"),
            Some(region) => format!("https://sts.{region}.amazonaws.com/"),
            None => "https://sts.amazonaws.com/".to_owned(),
        });
        let session = role.session.clone().unwrap_or_else(session_name);
        let fields =
            [("Action", action), ("Version", "2011-06-15"), ("RoleArn", &*role.arn), ("RoleSessionName", &*session)];
        let fields = fields.iter().chain(more).map(|(name, value)| format!("{name}={}", percent_encoded(value)));
        Request::post(&address)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(fields.collect::<Vec<_>>().join("&").into())
            .map_err(|e| Error::config(format!("'{address}' is no address of AWS's STS")).with_source(e))
    }

    async fn keys(&self, role: &Role, request: Request<Bytes>) -> Result<Keys> {
        let (status, body) = self.machine.ask(request).await?;
        let said = fields(&String::from_utf8_lossy(&body));
        let text = |name: &str| said.get(name).map(String::as_str);
        if let (true, Some(id), Some(secret)) = (status.is_success(), text("AccessKeyId"), text("SecretAccessKey")) {
            let token = text("SessionToken").map(str::to_owned);
            return Ok(Keys::new(id, secret, token, text("Expiration").and_then(time), "sts"));
        }
        Err(refused(&role.arn, status, text("Code").unwrap_or("no reason"), text("Message").unwrap_or_default()))
    }
}

/// Returns a session name for roles without a configured one.
fn session_name() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    format!("agent-{}", now.as_millis())
}

/// Parses a timestamp in AWS's format.
pub(super) fn time(text: &str) -> Option<SystemTime> {
    DateTime::from_str(text, Format::DateTime).ok()?.try_into().ok()
}

/// Builds the error for a refused request; retryable if the server is at fault.
pub(super) fn refused(whose: &str, status: StatusCode, code: &str, message: &str) -> Error {
    let what = format!("AWS gave no keys of {whose}: {code} {}", bounded(message, 300));
    let may_pass = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS || code.starts_with("Throttl");
    let (kind, retry) = match may_pass {
        true => (ErrorKind::Overloaded, Retry::Temporary(None)),
        false => (ErrorKind::Authentication, Retry::Permanent),
    };
    Error::new(kind, what.trim_end().to_owned()).with_retry(retry).with_context("status", status.as_u16().to_string())
}

/// Returns the text of each element of an XML document, by name. For a malformed document, returns
/// the elements before the error.
fn fields(xml: &str) -> BTreeMap<String, String> {
    let (mut reader, mut open, mut fields) = (Reader::from_str(xml), String::new(), BTreeMap::<_, String>::new());
    loop {
        match reader.read_event() {
            Ok(Event::Start(element)) => open = element.local_name().as_ref().to_owned(),
            Ok(Event::Text(text)) if !text.trim().is_empty() => {
                fields.entry(open.clone()).or_default().push_str(text.trim());
            }
            Ok(Event::Eof) | Err(_) => return fields,
            Ok(_) => {}
        }
    }
}
