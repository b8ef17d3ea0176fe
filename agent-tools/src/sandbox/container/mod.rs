//! [`ContainerSandbox`]: Docker or Podman container.

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

/// Container of Docker, or of an engine with a compatible API, such as Podman. It exists as long as
/// its sandbox.
///
/// The container has no network unless [`allow_network`](ContainerSandboxBuilder::allow_network) is
/// set, no capabilities, and none of the host's files. Its image must have `sh` and the usual
/// utilities of GNU or BusyBox; the image is not pulled: it must exist locally.
///
/// When the application exits for any reason, the container exits and is removed: its init process
/// waits for an input that the application holds. A paused container is removed by
/// [`sweep`](ContainerSandboxBuilder::sweep).
///
/// All commands of a sandbox share one container, and see each other's processes. Processes that a
/// command leaves behind are killed when it ends, unless they have emptied their environment: those
/// end with the sandbox, so [`guarantees`](Sandbox::guarantees) does not claim that nothing
/// outlives its command.
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
    /// Keeps the container alive until the last clone is dropped.
    kept: Arc<Kept>,
}

impl ContainerSandbox {
    /// Returns a builder for an image, which the engine must have.
    pub fn builder(image: impl Into<String>) -> ContainerSandboxBuilder {
        ContainerSandboxBuilder::new(image.into())
    }

    /// Returns the engine's id of the container.
    pub fn id(&self) -> &str {
        &self.id
    }
}

#[async_trait]
impl Sandbox for ContainerSandbox {
    async fn start(&self, command: Command) -> Result<Process> {
        exec::start(&self.engine, &self.id, &self.root, command).await
    }

    /// Pauses all programs in the engine. Meanwhile, no program starts and no file is read.
    async fn pause(&self) -> Result<()> {
        self.engine.docker().pause_container(&self.id).await.map_err(|e| self.engine.failed("pause the sandbox", e))
    }

    async fn resume(&self) -> Result<()> {
        self.engine.docker().unpause_container(&self.id).await.map_err(|e| self.engine.failed("resume the sandbox", e))
    }

    /// Creates an image of the container's files, without the temporary directory. Pass its name to
    /// [`builder`](Self::builder); the engine keeps it until it is removed.
    async fn snapshot(&self) -> Result<String> {
        let options = CommitContainerOptionsBuilder::new().container(&self.id).pause(true).build();
        let made = self.engine.docker().commit_container(options, ContainerConfig::default()).await;
        let id = made.map_err(|e| self.engine.failed("keep the sandbox's files", e))?.id;
        if id.is_empty() { Err(Error::tool("the engine has made no image")) } else { Ok(id) }
    }

    async fn close(&self) -> Result<()> {
        self.kept.let_go();
        // The engine may be removing the container already, since its init process has exited.
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
