//! Places where programs run and cannot do harm.
//!
//! Who gives a model a shell needs a [`Sandbox`]; who has another place for programs implements it. [`LocalSandbox`] keeps programs
//! of this machine in a directory; [`MemorySandbox`] is for tests. [`Shell`](crate::Shell) is the tools over it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_core::Result<()> {
//! use agent_tools::sandbox::{Command, Exit, MemorySandbox, Sandbox};
//!
//! let sandbox = MemorySandbox::new().program("date", |_| ("today\n".into(), Exit::code(0)));
//! let mut date = sandbox.start(Command::new("date")).await?;
//! assert_eq!(date.output().await.expect("writes"), "today\n");
//! assert!(date.exit().await?.is_success());
//! # Ok(())
//! # }
//! ```

mod command;
mod guarantees;
mod limits;
#[cfg(target_os = "linux")]
mod local;
mod memory;
mod process;

use std::fmt::Debug;

use agent_core::{Result, async_trait};
use bytes::Bytes;

#[cfg(target_os = "linux")]
pub use self::local::{Isolation, LocalSandbox, LocalSandboxBuilder};
pub use self::{
    command::Command,
    guarantees::Guarantees,
    limits::Limits,
    memory::MemorySandbox,
    process::{Driver, Exit, Input, Process},
};

/// A place in which programs run and files lie.
#[async_trait]
pub trait Sandbox: Debug + Send + Sync + 'static {
    /// Starts a program.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) for a directory that is not there. A program that is not there ends with the code 127, as
    /// shells have it.
    async fn start(&self, command: Command) -> Result<Process>;

    /// The content of a file. Paths are relative to the root, or absolute as programs see them.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if there is none, or none that may be read.
    async fn read(&self, path: &str) -> Result<Bytes>;

    /// Makes `content` the content of a file, at once and as a whole; folders on the way are made.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if it cannot be written.
    async fn write(&self, path: &str, content: Bytes) -> Result<()>;

    /// A directory for files that pass, as programs see it. It is empty at first and goes with the sandbox.
    fn temp_dir(&self) -> &str;

    /// What holds here.
    fn guarantees(&self) -> &Guarantees;
}
