//! [`Engine`]: what runs containers.

use std::{env, fmt, path::Path};

use agent_core::{Error, Result, Retry};
use bollard::{Docker, errors::Error as Failure};

use crate::text::cut;

/// Longest text of an engine's own that an error says, in bytes.
const LONGEST: usize = 400;

/// Where engines listen if nobody says it.
const SOCKETS: &[&str] = &["/var/run/docker.sock", "/run/podman/podman.sock"];

/// The same of a user, below `XDG_RUNTIME_DIR`.
const OWN_SOCKETS: &[&str] = &["docker.sock", "podman/podman.sock"];

/// A connection to an engine. Cheap to clone.
#[derive(Clone)]
pub(super) struct Engine {
    docker: Docker,
    address: String,
}

impl Engine {
    /// The one at an address, or the first that is found.
    pub(super) async fn connect(address: Option<&str>) -> Result<Self> {
        let Some(address) = address.map(str::to_owned).or_else(found) else {
            let what =
                "no engine for containers is found: start Docker, or 'podman system service', or set DOCKER_HOST";
            return Err(Error::config(what));
        };
        let refused = |e: Failure| {
            let what = format!("no engine for containers answers at '{address}': start it, or name another one");
            Error::config(what).with_source(e)
        };
        let docker = Docker::connect_with_host(&address).map_err(refused)?;
        // An older engine is spoken to in its own version.
        let docker = docker.negotiate_version().await.map_err(refused)?;
        Ok(Self { docker, address })
    }

    pub(super) fn docker(&self) -> &Docker {
        &self.docker
    }

    /// The engine could not do what it was asked.
    pub(super) fn failed(&self, what: &str, e: Failure) -> Error {
        let retry = match &e {
            Failure::DockerResponseServerError { .. } => Retry::Permanent,
            _ => Retry::Temporary(None),
        };
        Error::tool(format!("the engine for containers could not {what}: {}", said(&e)))
            .with_retry(retry)
            .with_source(e)
    }
}

/// What an engine says of a failure, in few words.
pub(super) fn said(e: &Failure) -> String {
    let text = match e {
        Failure::DockerResponseServerError { message, .. } => message.trim().to_owned(),
        other => other.to_string(),
    };
    cut(&text, LONGEST).to_owned()
}

/// What was asked for is not there, or is going already.
pub(super) fn is_gone(e: &Failure) -> bool {
    matches!(e, Failure::DockerResponseServerError { status_code: 404 | 409, .. })
}

pub(super) fn is_missing(e: &Failure) -> bool {
    matches!(e, Failure::DockerResponseServerError { status_code: 404, .. })
}

fn found() -> Option<String> {
    let own = env::var("XDG_RUNTIME_DIR").ok();
    let own = own.iter().flat_map(|dir| OWN_SOCKETS.iter().map(move |socket| format!("{dir}/{socket}")));
    let all = SOCKETS.iter().map(|socket| (*socket).to_owned()).chain(own);
    let listens = || all.into_iter().find(|socket| Path::new(socket).exists()).map(|socket| format!("unix://{socket}"));
    env::var("DOCKER_HOST").ok().filter(|address| !address.is_empty()).or_else(listens)
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("address", &self.address).finish_non_exhaustive()
    }
}
