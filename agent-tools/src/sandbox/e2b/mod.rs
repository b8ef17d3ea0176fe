//! [`E2bSandbox`]: virtual machine of a service with E2B's API.

mod builder;
mod daemon;
mod lease;
mod link;
mod running;
mod server;
mod service;
mod wire;

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Error, Result, async_trait, run::new_id};
use bytes::Bytes;

pub use self::builder::E2bSandboxBuilder;
use self::{builder::Reaching, link::Link, server::Failure, service::Service};
use super::{Command, Entry, EntryKind, Guarantees, Process, Sandbox, by_shell};

/// Sandbox of E2B, or of a service with a compatible API: a dedicated remote virtual machine.
///
/// The sandbox lives on a lease, which the application renews: if the application exits for any
/// reason, the lease expires and the sandbox ends. The sandbox is removed when it is closed, and
/// when its last clone is dropped within a runtime. With [`keep`](E2bSandboxBuilder::keep) it
/// stays, paused, until an application [attaches](E2bSandboxBuilder::attach) to it by its
/// [`id`](Self::id), one application at a time.
///
/// It has no network unless [`allow_network`](E2bSandboxBuilder::allow_network) is set. The
/// template determines memory, processors and disk. All commands see each other's processes;
/// processes that a command leaves behind are killed when it ends, unless they have emptied their
/// environment.
///
/// Programs continue when a sandbox is resumed. Output that was in transit when the sandbox was
/// paused is lost.
///
/// ```no_run
/// use agent_tools::sandbox::{Command, E2bSandbox, Sandbox};
///
/// # async fn example() -> agent_core::Result<()> {
/// let key = std::env::var("E2B_API_KEY").expect("a key");
/// let sandbox = E2bSandbox::builder("base", key).build().await?;
/// let mut program = sandbox.start(Command::shell("echo hello > greeting")).await?;
/// assert!(program.exit().await?.is_success());
/// assert_eq!(sandbox.read("greeting").await?, "hello\n");
/// sandbox.close().await
/// # }
/// ```
#[derive(Clone)]
pub struct E2bSandbox(Arc<Inner>);

struct Inner {
    service: Service,
    reaching: Reaching,
    link: Link,
    root: String,
    temp: String,
    lease: Duration,
    keep: bool,
    guarantees: Guarantees,
}

impl E2bSandbox {
    /// Returns a builder for a template, or for a [snapshot](Sandbox::snapshot), with an account's
    /// API key. The key appears in no log and no error, and is sent to the service only.
    pub fn builder(template: impl Into<String>, key: impl Into<agent_core::tool::Secret>) -> E2bSandboxBuilder {
        E2bSandboxBuilder::new(template.into(), key.into())
    }

    /// Returns the service's id of the sandbox.
    pub fn id(&self) -> &str {
        self.0.link.id()
    }

    /// Returns the absolute path for the daemon.
    fn absolute(&self, path: &str) -> String {
        match path {
            "" | "." => self.0.root.clone(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!("{}/{path}", self.0.root),
        }
    }

    /// Explains why a file cannot be used. Error texts vary between daemon versions, so the path is
    /// inspected instead.
    async fn explained(&self, path: &str, failure: Failure) -> Error {
        if failure.is_too_large() {
            return super::too_large(path);
        }
        if failure.is_status(404) || failure.is_code("not_found") {
            return Error::tool(format!("'{path}' does not exist"));
        }
        let is_refusal = [400, 500].into_iter().any(|status| failure.is_status(status));
        let why = match self.0.link.daemon().stat(&self.absolute(path)).await {
            Ok(Some(found)) if is_refusal => match found.kind {
                EntryKind::Folder => "it is a directory",
                EntryKind::Other => "it is not a regular file",
                EntryKind::File | EntryKind::Link => "the sandbox does not allow it",
            },
            _ => return failure.into(),
        };
        Error::tool(format!("'{path}' cannot be used: {why}"))
    }
}

#[async_trait]
impl Sandbox for E2bSandbox {
    async fn start(&self, command: Command) -> Result<Process> {
        running::start(&self.0.link, &self.0.root, &self.0.temp, command).await
    }

    async fn read(&self, path: &str) -> Result<Bytes> {
        match self.0.link.daemon().download(&self.absolute(path)).await {
            Ok(content) => Ok(content),
            Err(e) => Err(self.explained(path, e).await),
        }
    }

    /// Uploads to the temporary directory first, so that the file is replaced atomically.
    async fn write(&self, path: &str, content: Bytes) -> Result<()> {
        super::check_size(path, content.len())?;
        let draft = format!("{}/{}", self.0.temp, new_id());
        self.0.link.daemon().upload(&draft, &content).await?;
        by_shell::take(self, path, &draft, content.len()).await
    }

    async fn list(&self, path: &str) -> Result<Vec<Entry>> {
        match self.0.link.daemon().list(&self.absolute(path)).await {
            Ok(entries) => Ok(entries),
            Err(e) => Err(self.explained(path, e).await),
        }
    }

    async fn stat(&self, path: &str) -> Result<Option<Entry>> {
        Ok(self.0.link.daemon().stat(&self.absolute(path)).await?)
    }

    /// Pauses the machine, with its memory. Meanwhile, no program starts and no file is read; its
    /// lease is not renewed, and the service may remove it after a time that it determines.
    async fn pause(&self) -> Result<()> {
        self.0.link.pauses();
        let paused = self.0.service.pause(self.0.link.id()).await;
        if paused.is_err() {
            self.0.link.resumed(None);
        }
        paused
    }

    async fn resume(&self) -> Result<()> {
        let made = self.0.service.connect(self.0.link.id(), self.0.lease).await?;
        self.0.link.resumed(Some(self.0.reaching.daemon(&made)?));
        Ok(())
    }

    /// Creates a template of the machine's current state, including its programs. Pass its name to
    /// [`builder`](Self::builder); the service keeps it until it is removed.
    async fn snapshot(&self) -> Result<String> {
        self.0.service.snapshot(self.0.link.id()).await
    }

    async fn close(&self) -> Result<()> {
        self.0.link.close();
        self.0.service.remove(self.0.link.id()).await.map(drop)
    }

    fn root(&self) -> &str {
        &self.0.root
    }

    fn temp_dir(&self) -> &str {
        &self.0.temp
    }

    fn guarantees(&self) -> &Guarantees {
        &self.0.guarantees
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.link.close() && !self.keep {
            lease::remove_later(&self.service, self.link.id());
        }
    }
}

impl fmt::Debug for E2bSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("E2bSandbox").field("id", &self.id()).field("root", &self.0.root).finish_non_exhaustive()
    }
}
