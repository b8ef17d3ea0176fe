//! [`Engine`]: client of a container engine.

use std::{env, fmt, path::Path};

use agent_core::{Error, Result, Retry};
use bollard::{Docker, errors::Error as Failure};

use crate::text::cut;

/// Maximum of bytes of an engine's message in an error.
const LONGEST: usize = 400;

/// Default sockets of engines.
const SOCKETS: &[&str] = &["/var/run/docker.sock", "/run/podman/podman.sock"];

/// Default sockets of a user's engine, below `XDG_RUNTIME_DIR`.
const OWN_SOCKETS: &[&str] = &["docker.sock", "podman/podman.sock"];

/// Connection to an engine. Cheap to clone.
#[derive(Clone)]
pub(super) struct Engine {
    docker: Docker,
    address: String,
}

impl Engine {
    /// Connects to the engine at an address, or to the first that is found.
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
        // Uses the API version of an older engine.
        let docker = docker.negotiate_version().await.map_err(refused)?;
        Ok(Self { docker, address })
    }

    pub(super) fn docker(&self) -> &Docker {
        &self.docker
    }

    /// Returns the error of a failed request.
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

/// Returns a short form of the engine's error message.
pub(super) fn said(e: &Failure) -> String {
    let text = match e {
        Failure::DockerResponseServerError { message, .. } => message.trim().to_owned(),
        other => other.to_string(),
    };
    cut(&text, LONGEST).to_owned()
}

/// Returns true if the requested object is missing, or is being removed.
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
