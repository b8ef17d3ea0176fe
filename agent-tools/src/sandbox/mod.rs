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

mod archive;
mod by_shell;
mod command;
#[cfg(feature = "container")]
mod container;
#[cfg(feature = "e2b")]
mod e2b;
mod guarantees;
mod limits;
#[cfg(target_os = "linux")]
mod local;
#[cfg(any(feature = "container", feature = "e2b"))]
mod marked;
mod memory;
#[cfg(any(feature = "container", feature = "e2b"))]
mod owner;
mod process;
mod tool;
mod tree;

use std::{fmt::Debug, path::Path};

use agent_core::{Error, Result, async_trait};
use bytes::Bytes;

#[cfg(feature = "container")]
pub use self::container::{ContainerSandbox, ContainerSandboxBuilder};
#[cfg(feature = "e2b")]
pub use self::e2b::{E2bSandbox, E2bSandboxBuilder};
#[cfg(target_os = "linux")]
pub use self::local::{Isolation, LocalSandbox, LocalSandboxBuilder};
pub use self::{
    command::Command,
    guarantees::Guarantees,
    limits::Limits,
    memory::MemorySandbox,
    process::{Driver, Exit, Input, Process},
    tool::ProgramTool,
    tree::Copied,
};
pub use crate::files::place::{Entry, EntryKind};

/// The largest file that a sandbox reads or writes, in bytes.
pub const LARGEST_FILE: u64 = 64 << 20;

/// A place in which programs run and files lie.
///
/// Who can start programs somewhere has the files, too: by default they are read and changed by the shell that is there.
#[async_trait]
pub trait Sandbox: Debug + Send + Sync + 'static {
    /// Starts a program.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) for a directory that is not there. A program that is not there ends with the code 127, as
    /// shells have it.
    async fn start(&self, command: Command) -> Result<Process>;

    /// The content of a file of at most [`LARGEST_FILE`] bytes. Paths are relative to the root, or absolute as programs see them.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if there is none, or none that may be read.
    async fn read(&self, path: &str) -> Result<Bytes> {
        by_shell::read(self, path).await
    }

    /// Makes `content` the content of a file, at once and as a whole; folders on the way are made. A file that is replaced keeps its mode.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if it cannot be written, or is larger than [`LARGEST_FILE`].
    async fn write(&self, path: &str, content: Bytes) -> Result<()> {
        by_shell::write(self, path, content).await
    }

    /// What a folder holds, in any order.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if it is no folder that may be read.
    async fn list(&self, path: &str) -> Result<Vec<Entry>> {
        by_shell::list(self, path).await
    }

    /// What has this path, where a link is a link; none if nothing has.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if that cannot be told.
    async fn stat(&self, path: &str) -> Result<Option<Entry>> {
        by_shell::stat(self, path).await
    }

    /// Removes a file.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if there is none, or it is a folder.
    async fn remove(&self, path: &str) -> Result<()> {
        by_shell::remove(self, path).await
    }

    /// Copies what lies in a folder of the host into a folder of the sandbox, which is made: folders, and files with their modes. What is there already
    /// stays, and a file of the same path is replaced. Links, pipes, sockets and devices are left out; 4 GiB and a million entries are the most.
    ///
    /// By default it is done by the `tar` that is there, in one stream.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> agent_core::Result<()> {
    /// use agent_tools::sandbox::{MemorySandbox, Sandbox};
    ///
    /// let project = tempfile::tempdir().expect("a directory");
    /// std::fs::write(project.path().join("notes"), "1").expect("writes");
    /// let sandbox = MemorySandbox::new();
    /// assert_eq!(sandbox.upload(project.path(), "project").await?.files, 1);
    /// assert_eq!(sandbox.read("project/notes").await?, "1");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if a folder cannot be read or written, or there is too much: some of it may have been copied then.
    async fn upload(&self, from: &Path, to: &str) -> Result<Copied> {
        archive::upload(self, from, to).await
    }

    /// Copies what lies in a folder of the sandbox into a folder of the host, which is made, as [`upload`](Self::upload) does the other way. Nothing
    /// is written outside of that folder, whatever the sandbox says, and no file becomes one that runs as another user.
    ///
    /// # Errors
    /// As for [`upload`](Self::upload).
    async fn download(&self, from: &str, to: &Path) -> Result<Copied> {
        archive::download(self, from, to).await
    }

    /// Halts all programs where they are, until [`resume`](Self::resume). Meanwhile nothing starts, and files may be out of reach.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) by default: this sandbox cannot.
    async fn pause(&self) -> Result<()> {
        Err(cannot(self, "pause"))
    }

    /// Lets programs go on.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) by default: this sandbox cannot.
    async fn resume(&self) -> Result<()> {
        Err(cannot(self, "resume"))
    }

    /// Keeps the files as they are now, under a name by which a sandbox of the same kind begins with them. It stays when the sandbox is closed.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) by default: this sandbox cannot.
    async fn snapshot(&self) -> Result<String> {
        Err(cannot(self, "make snapshots"))
    }

    /// Ends all programs, and removes what the sandbox has made outside of its root: it is not used any more. By default it does
    /// nothing: what must go, goes when the sandbox is dropped.
    ///
    /// # Errors
    /// If it may not be gone; what is left is removed as the sandbox's own documentation says.
    async fn close(&self) -> Result<()> {
        Ok(())
    }

    /// The directory that programs start in, as they see it.
    fn root(&self) -> &str;

    /// A directory for files that pass, as programs see it. It is empty at first and goes with the sandbox.
    fn temp_dir(&self) -> &str;

    /// What holds here.
    fn guarantees(&self) -> &Guarantees;
}

fn cannot<S: Sandbox + ?Sized>(sandbox: &S, what: &str) -> Error {
    Error::config(format!("this sandbox cannot {what} ({}): use one that can", sandbox.guarantees().by))
}

fn check_size(path: &str, bytes: usize) -> Result<()> {
    if bytes as u64 > LARGEST_FILE { Err(too_large(path)) } else { Ok(()) }
}

fn too_large(path: &str) -> Error {
    Error::tool(format!("'{path}' has more than the {LARGEST_FILE} bytes that a sandbox reads and writes"))
}
