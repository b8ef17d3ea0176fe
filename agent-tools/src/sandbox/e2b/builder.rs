//! [`E2bSandboxBuilder`].

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use agent_core::{Error, Result, tool::Secret};
use reqwest::header::HeaderValue;
use tokio::time::timeout;
use url::Url;

use super::{
    E2bSandbox, Inner,
    daemon::Daemon,
    lease,
    link::Link,
    running::{self, kill_marked},
    server::Server,
    service::{Service, check_id, tags},
    wire::{Made, NewSandbox},
};
use crate::{
    http::{AddressPolicy, System},
    sandbox::{Command, Guarantees, marked::marks, owner},
};

/// Port of the daemon in a sandbox.
const PORT: &str = "49983";

/// Timeout of the first program.
const LONGEST: Duration = Duration::from_secs(60);

/// Metadata tags of this application's sandboxes: kind and owner.
const TAG: &str = "agent-sandbox";
const OWNER: &str = "agent-sandbox-owner";

/// Value of the tag: ephemeral (removed with its application) or kept.
const PASSING: &str = "passing";
const KEPT: &str = "kept";

/// Creates the directories, checks whether an input can be closed, and prints the root.
const FIRST: &str = "root=$1; case $root in /*) ;; *) root=$HOME/$root ;; esac
mkdir -p -- \"$root\" \"$2\" && chmod 700 -- \"$2\" && [ -w \"$root\" ] && cat && cd -- \"$root\" && pwd";

/// Maximum of bytes of that output.
const LONGEST_PATH: usize = 4096;

/// Builds an [`E2bSandbox`].
#[derive(Clone)]
pub struct E2bSandboxBuilder {
    template: String,
    key: Secret,
    domain: Option<String>,
    api: Option<String>,
    daemon: Option<String>,
    root: String,
    user: Option<String>,
    env: BTreeMap<String, String>,
    metadata: BTreeMap<String, String>,
    lease: Duration,
    keep: bool,
    network: bool,
}

/// Addresses of the daemons of sandboxes.
#[derive(Clone, Debug)]
pub(super) struct Reaching {
    domain: String,
    is_named: bool,
    fixed: Option<Url>,
    user: Option<String>,
}

impl E2bSandboxBuilder {
    pub(super) fn new(template: String, key: Secret) -> Self {
        Self {
            template,
            key,
            domain: None,
            api: None,
            daemon: None,
            root: "workspace".to_owned(),
            user: None,
            env: BTreeMap::new(),
            metadata: BTreeMap::new(),
            lease: Duration::from_secs(300),
            keep: false,
            network: false,
        }
    }

    /// Sets the domain of the service: its API is at `https://api.<domain>`, and its sandboxes at
    /// `https://49983-<id>.<domain>`. Default: `e2b.app`.
    #[must_use]
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = Some(domain.into());
        self
    }

    /// Sets the URL of the API, if it is not below the domain.
    #[must_use]
    pub fn api_url(mut self, url: impl Into<String>) -> Self {
        self.api = Some(url.into());
        self
    }

    /// Sets one URL for all sandboxes: a gateway that routes by the headers `E2b-Sandbox-Id` and
    /// `E2b-Sandbox-Port`.
    #[must_use]
    pub fn sandbox_url(mut self, url: impl Into<String>) -> Self {
        self.daemon = Some(url.into());
        self
    }

    /// Sets the working directory of programs, absolute or below the user's home, which is created
    /// if missing. Default: `workspace`.
    #[must_use]
    pub fn root(mut self, root: impl Into<String>) -> Self {
        self.root = root.into();
        self
    }

    /// Sets the user that programs run as and that owns files. Default: the template's.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets an environment variable. The service sees it.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets a metadata entry of the sandbox, visible in listings of the account.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// Sets the lease: the time that the sandbox lives after the application exits. The application
    /// renews it until then. In whole seconds, at least 15. Default: 5 minutes.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Keeps the sandbox when it is dropped, or its application exits: it is paused when its lease
    /// expires. [`close`](crate::sandbox::Sandbox::close) removes it.
    #[must_use]
    pub fn keep(mut self) -> Self {
        self.keep = true;
        self
    }

    /// Allows programs to use the internet. Default: off.
    #[must_use]
    pub fn allow_network(mut self) -> Self {
        self.network = true;
        self
    }

    /// Creates the sandbox, and starts a test program in it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if a setting is invalid, the template
    /// is missing, or the created sandbox is unusable;
    /// [`ErrorKind::Authentication`](agent_core::ErrorKind::Authentication) if the key is rejected.
    pub async fn build(self) -> Result<E2bSandbox> {
        let (service, reaching) = self.reached()?;
        let kind = if self.keep { KEPT } else { PASSING };
        let owner = owner::this().unwrap_or_default();
        let wanted = NewSandbox {
            template: &self.template,
            timeout: self.lease.as_secs(),
            auto_pause: self.keep,
            secure: true,
            network: self.network,
            metadata: &tags(&self.metadata, &[(TAG, kind.to_owned()), (OWNER, owner)]),
            env_vars: &self.env,
        };
        let made = service.create(&wanted).await?;
        let id = made.id.clone();
        let sandbox = self.checked(service.clone(), reaching, made).await;
        if sandbox.is_err() {
            // The first error is reported; a sandbox that stays ends with its lease.
            drop(service.remove(&id).await);
        }
        sandbox
    }

    /// Attaches to an existing sandbox, and resumes it if it is paused. Programs of an earlier
    /// application that still run in it are killed. Template, environment and network are those of
    /// its creation.
    ///
    /// # Errors
    /// As [`build`](Self::build), and [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if the
    /// sandbox no longer exists.
    pub async fn attach(self, id: &str) -> Result<E2bSandbox> {
        check_id(id)?;
        let (service, reaching) = self.reached()?;
        let made = service.connect(id, self.lease).await?;
        if made.id != id {
            return Err(Error::tool("the service of sandboxes gives another one than was asked for"));
        }
        if !kill_marked(&reaching.daemon(&made)?, &marks(id)).await? {
            return Err(Error::tool("what runs in the sandbox cannot be ended: make a new one"));
        }
        self.checked(service, reaching, made).await
    }

    /// Removes the account's sandboxes of applications on this machine that no longer run, except
    /// [kept](Self::keep) ones. Returns their number. Such sandboxes also expire with their lease.
    ///
    /// # Errors
    /// If the service does not list its sandboxes, or does not remove one.
    pub async fn sweep(&self) -> Result<usize> {
        let (service, _) = self.reached()?;
        let mut removed = 0;
        for found in service.list(TAG, PASSING).await? {
            if found.metadata.get(OWNER).is_some_and(|owner| owner::is_gone(owner)) && check_id(&found.id).is_ok() {
                removed += usize::from(service.remove(&found.id).await?);
            }
        }
        Ok(removed)
    }

    fn reached(&self) -> Result<(Service, Reaching)> {
        if self.lease < Duration::from_secs(15) {
            return Err(Error::config("the lease of a sandbox is 15 seconds at least"));
        }
        let domain = self.domain.clone().unwrap_or_else(|| "e2b.app".to_owned());
        let api = self.api.clone().unwrap_or_else(|| format!("https://api.{domain}"));
        let fixed = self.daemon.as_deref().map(address).transpose()?;
        let is_named = self.domain.is_some();
        let reaching = Reaching { domain, is_named, fixed, user: self.user.clone() };
        Ok((Service::new(address(&api)?, self.key.clone())?, reaching))
    }

    async fn checked(self, service: Service, reaching: Reaching, made: Made) -> Result<E2bSandbox> {
        let link = Link::new(&made.id, reaching.daemon(&made)?);
        let temp = format!("/tmp/agent-{}", made.id);
        let tried = timeout(LONGEST, try_out(&link, &self.root, &temp)).await;
        let root =
            tried.unwrap_or_else(|_| Err(Error::config("its first program does not end: it cannot close an input")))?;
        let detail = service.detail(&made.id).await?;
        let guarantees = Guarantees {
            files: true,
            network: detail.allow_internet_access == Some(false),
            processes: true,
            memory: detail.memory > 0,
            ..Guarantees::none("a machine of a service, which says so")
        };
        if !guarantees.network && !self.network {
            return Err(Error::config(
                "the service does not say that the sandbox has no network: make another one, or allow the network",
            ));
        }
        lease::keep(service.clone(), link.clone(), self.lease);
        let (lease, keep) = (self.lease, self.keep);
        Ok(E2bSandbox(Arc::new(Inner { service, reaching, link, root, temp, lease, keep, guarantees })))
    }
}

/// Runs the first program. Returns the path of the root.
async fn try_out(link: &Link, root: &str, temp: &str) -> Result<String> {
    let command = Command::shell(FIRST).arg("sh").arg(root).arg(temp).dir("/");
    let mut first = running::start(link, "/", temp, command).await?;
    drop(first.take_input());
    let mut said = Vec::new();
    while let Some(piece) = first.output().await
        && said.len() <= LONGEST_PATH
    {
        said.extend_from_slice(&piece);
    }
    let path = String::from_utf8(said).ok().and_then(|said| Some(said.strip_suffix('\n')?.to_owned()));
    let path = path.filter(|path| path.starts_with('/') && !path.contains('\n') && path.len() < LONGEST_PATH);
    let unusable = "or it has no shell with the usual small programs";
    path.ok_or_else(|| {
        Error::config(format!("the sandbox cannot be used: its user may not write into '{root}', {unusable}"))
    })
}

impl Reaching {
    /// Returns the daemon of a sandbox. An address that only the service named must be on the
    /// public internet.
    pub(super) fn daemon(&self, made: &Made) -> Result<Daemon> {
        let Some(token) = made.envd_access_token.clone() else {
            return Err(Error::config("the service gives no token for its sandbox, so that anybody could use it"));
        };
        let domain = made.domain.as_deref().filter(|domain| !domain.is_empty()).unwrap_or(&self.domain);
        let reach = if self.fixed.is_some() || (self.is_named && domain == self.domain) {
            AddressPolicy::anywhere()
        } else {
            AddressPolicy::public(Arc::new(System))
        };
        let url = match &self.fixed {
            Some(url) => url.clone(),
            None => address(&format!("https://{PORT}-{}.{domain}", made.id))?,
        };
        let id = HeaderValue::from_str(&made.id).expect("it was looked at");
        let server = Server::new("the sandbox", url, reach, "x-access-token", token.into())?;
        let server = server.with_header("e2b-sandbox-id", id);
        let server = server.with_header("e2b-sandbox-port", HeaderValue::from_static(PORT));
        Ok(Daemon::new(server, self.user.clone()))
    }
}

fn address(url: &str) -> Result<Url> {
    // The URL may hold a password, so it is not repeated.
    let wrong = || {
        Error::config(
            "this is not the address of a service: write one such as https://api.example.org, without a name or a password",
        )
    };
    let parsed = Url::parse(url).map_err(|_| wrong())?;
    let is_plain = parsed.username().is_empty() && parsed.password().is_none() && parsed.query().is_none();
    if is_plain && matches!(parsed.scheme(), "http" | "https") && parsed.fragment().is_none() {
        Ok(parsed)
    } else {
        Err(wrong())
    }
}

impl fmt::Debug for E2bSandboxBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("E2bSandboxBuilder")
            .field("template", &self.template)
            .field("domain", &self.domain)
            .field("api_url", &self.api)
            .field("sandbox_url", &self.daemon)
            .field("root", &self.root)
            .field("user", &self.user)
            .field("env", &self.env.keys())
            .field("metadata", &self.metadata)
            .field("lease", &self.lease)
            .field("keep", &self.keep)
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}
