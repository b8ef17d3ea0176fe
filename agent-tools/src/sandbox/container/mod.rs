//! [`ContainerSandbox`]: a container of Docker or Podman.

mod builder;
mod engine;
mod exec;
mod kept;
mod probe;

use std::{fmt, sync::Arc};

use agent_core::{Error, Result, async_trait};
use bollard::{models::ContainerConfig, query_parameters::CommitContainerOptionsBuilder};

pub use self::builder::ContainerSandboxBuilder;
use self::{engine::Engine, kept::Kept};
use super::{Command, Guarantees, Process, Sandbox};

/// A container of Docker, or of what speaks its interface, as Podman does. One lives as long as its sandbox.
///
/// It has no network unless [`allow_network`](ContainerSandboxBuilder::allow_network) says so, no capabilities, and nothing of the host's files. Its
/// image must have `sh` and the usual small programs, as GNU and BusyBox have them; it is not fetched: it must be there.
///
/// When the application ends, however it does, the container ends and is removed: its first process waits for an input that the application holds. What
/// was paused then is removed by [`sweep`](ContainerSandboxBuilder::sweep).
///
/// All commands of one sandbox are in one container, and see each other's processes. What a command leaves behind is killed when it ends, unless
/// it has emptied its environment: that ends with the sandbox, so [`guarantees`](Sandbox::guarantees) does not say that nothing outlives its command.
///
/// ```
/// use agent_tools::sandbox::{Command, ContainerSandbox, Sandbox};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agent_core::Result<()> {
/// let sandbox = match ContainerSandbox::builder("debian:stable-slim").build().await {
///     Ok(sandbox) => sandbox,
///     Err(refused) => return Ok(println!("{refused}")),
/// };
/// println!("{}", sandbox.guarantees());
/// let mut program = sandbox.start(Command::shell("echo hello > greeting")).await?;
/// assert!(program.exit().await?.is_success());
/// assert_eq!(sandbox.read("greeting").await?, "hello\n");
/// sandbox.close().await
/// # }
/// ```
#[derive(Clone)]
pub struct ContainerSandbox {
    engine: Engine,
    id: Arc<str>,
    root: Arc<str>,
    guarantees: Guarantees,
    /// Lets the container end with the last clone.
    kept: Arc<Kept>,
}

impl ContainerSandbox {
    /// One of an image, which the engine must have.
    pub fn builder(image: impl Into<String>) -> ContainerSandboxBuilder {
        ContainerSandboxBuilder::new(image.into())
    }

    /// The container's name for the engine.
    pub fn id(&self) -> &str {
        &self.id
    }
}

#[async_trait]
impl Sandbox for ContainerSandbox {
    async fn start(&self, command: Command) -> Result<Process> {
        exec::start(&self.engine, &self.id, &self.root, command).await
    }

    /// Halts all programs, by the engine. While it lasts, nothing starts and no file is read.
    async fn pause(&self) -> Result<()> {
        self.engine.docker().pause_container(&self.id).await.map_err(|e| self.engine.failed("pause the sandbox", e))
    }

    async fn resume(&self) -> Result<()> {
        self.engine.docker().unpause_container(&self.id).await.map_err(|e| self.engine.failed("resume the sandbox", e))
    }

    /// An image of the container's files, without those of the temporary directory. Its name is for [`builder`](Self::builder); the engine keeps it
    /// until somebody removes it.
    async fn snapshot(&self) -> Result<String> {
        let options = CommitContainerOptionsBuilder::new().container(&self.id).pause(true).build();
        let made = self.engine.docker().commit_container(options, ContainerConfig::default()).await;
        let id = made.map_err(|e| self.engine.failed("keep the sandbox's files", e))?.id;
        if id.is_empty() { Err(Error::tool("the engine has made no image")) } else { Ok(id) }
    }

    async fn close(&self) -> Result<()> {
        self.kept.let_go();
        // The engine may be removing it already, since its first process has ended.
        builder::remove_unused(&self.engine, &self.id).await.map(drop)
    }

    fn root(&self) -> &str {
        &self.root
    }

    fn temp_dir(&self) -> &str {
        builder::TEMP
    }

    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }
}

impl fmt::Debug for ContainerSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerSandbox").field("id", &self.id).field("root", &self.root).finish_non_exhaustive()
    }
}
