//! Credentials from AWS metadata servers: of containers (ECS, EKS) and of instances (EC2).

use std::{net::IpAddr, time::Duration};

use agent_core::{Error, ErrorKind, Result};
use aws_credential_types::Credentials as Keys;
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use serde::Deserialize;

use super::{
    machine::Machine,
    sts::{refused, time},
};
use crate::auth::insert;

const OF_CONTAINERS: &str = "http://169.254.170.2";

const OF_MACHINES: &str = "http://169.254.169.254";

/// Further hosts that serve credentials to containers without encryption.
const NEAR: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

/// Timeout for detecting the metadata server: most machines are not in AWS's cloud.
const IS_THERE: Duration = Duration::from_secs(1);

/// Timeout for its answers once it is known to exist.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Said {
    access_key_id: String,
    secret_access_key: String,
    token: Option<String>,
    expiration: Option<String>,
}

/// Returns the credentials of an ECS task or an EKS pod; `None` outside of both.
pub(super) async fn of_container(machine: &Machine) -> Result<Option<Keys>> {
    let relative = machine.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let said = relative.map(|path| format!("{OF_CONTAINERS}{path}"));
    let Some(url) = said.or_else(|| machine.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")) else { return Ok(None) };
    let uri = url.parse::<Uri>().ok().filter(is_near).ok_or_else(|| {
        Error::config(format!(
            "'{url}' is no address of AWS's that gives keys: it is neither encrypted nor of this machine"
        ))
    })?;
    let mut request = empty(Method::GET, uri);
    // The file is rewritten from time to time.
    let token = match machine.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(file) => Some(machine.file(&file)?),
        None => machine.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
    };
    if let Some(token) = token {
        insert(request.headers_mut(), header::AUTHORIZATION.as_str(), &token)?;
    }
    let (status, body) = machine.ask_near(request, PATIENCE).await?;
    keys("the container", status, &body).map(Some)
}

/// Returns true if the URI is safe for a token and for unencrypted credentials.
fn is_near(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match uri.scheme_str() {
        Some("https") => true,
        Some("http") => is_loopback || NEAR.contains(&host),
        _ => false,
    }
}

/// Returns the credentials of the instance's role; `None` if this is not an EC2 instance, or it has
/// no role.
pub(super) async fn of_instance(machine: &Machine) -> Result<Option<Keys>> {
    const ROLES: &str = "/latest/meta-data/iam/security-credentials/";
    if machine.variable("AWS_EC2_METADATA_DISABLED").is_some_and(|said| said.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let mut request = empty(Method::PUT, of_machine(machine, "/latest/api/token")?);
    insert(request.headers_mut(), "x-aws-ec2-metadata-token-ttl-seconds", "300")?;
    let Ok((StatusCode::OK, token)) = machine.ask_near(request, IS_THERE).await else { return Ok(None) };
    let token = String::from_utf8_lossy(&token);
    let (status, roles) = get(machine, ROLES, &token).await?;
    if status == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    if !status.is_success() {
        return Err(refused("the machine", status, "", ""));
    }
    let roles = String::from_utf8_lossy(&roles);
    let Some(role) = roles.lines().map(str::trim).find(|role| !role.is_empty()) else { return Ok(None) };
    let (status, body) = get(machine, &format!("{ROLES}{role}"), &token).await?;
    keys("the machine", status, &body).map(Some)
}

async fn get(machine: &Machine, path: &str, token: &str) -> Result<(StatusCode, Bytes)> {
    let mut request = empty(Method::GET, of_machine(machine, path)?);
    insert(request.headers_mut(), "x-aws-ec2-metadata-token", token.trim())?;
    machine.ask_near(request, PATIENCE).await
}

/// Returns the URI of a path on the instance metadata server.
fn of_machine(machine: &Machine, path: &str) -> Result<Uri> {
    let base = machine.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or_else(|| OF_MACHINES.to_owned());
    let url = format!("{}{path}", base.trim_end_matches('/'));
    url.parse::<Uri>().map_err(|e| Error::config(format!("'{url}' is no address of the machine's")).with_source(e))
}

fn empty(method: Method, uri: Uri) -> Request<Bytes> {
    let mut request = Request::new(Bytes::new());
    (*request.method_mut(), *request.uri_mut()) = (method, uri);
    request
}

fn keys(whose: &str, status: StatusCode, body: &[u8]) -> Result<Keys> {
    if !status.is_success() {
        return Err(refused(whose, status, "", ""));
    }
    // An unreadable body may contain a key: the error does not quote it.
    let said: Said = serde_json::from_slice(body).map_err(|_| {
        Error::new(ErrorKind::Authentication, format!("what AWS says of the keys of {whose} holds none"))
    })?;
    let expires = said.expiration.as_deref().and_then(time);
    Ok(Keys::new(said.access_key_id, said.secret_access_key, said.token, expires, "metadata"))
}
