//! Sandboxes: isolated environments for programs.
//!
//! A model's shell needs a [`Sandbox`]; implement the trait for other environments.
//! [`LocalSandbox`] confines programs of this machine to a directory; [`MemorySandbox`] is for
//! tests. [`Shell`](crate::Shell) is the set of tools over a sandbox.
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

/// Maximum size of a file that a sandbox reads or writes, in bytes.
pub const LARGEST_FILE: u64 = 64 << 20;

/// Environment in which programs run and files are stored.
///
/// An implementation only needs to start programs: by default, files are read and changed with the
/// sandbox's shell.
#[async_trait]
pub trait Sandbox: Debug + Send + Sync + 'static {
    /// Starts a program.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) for a missing directory. A missing program
    /// exits with the code 127, as in shells.
    async fn start(&self, command: Command) -> Result<Process>;

    /// Reads a file of at most [`LARGEST_FILE`] bytes. Paths are relative to the root, or absolute
    /// from the programs' point of view.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if the file is missing or unreadable.
    async fn read(&self, path: &str) -> Result<Bytes> {
        by_shell::read(self, path).await
    }

    /// Replaces the content of a file atomically; missing folders are created. A replaced file
    /// keeps its mode.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if the file cannot be written, or is larger
    /// than [`LARGEST_FILE`].
    async fn write(&self, path: &str, content: Bytes) -> Result<()> {
        by_shell::write(self, path, content).await
    }

    /// Lists a folder, in any order.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if the path is not a readable folder.
    async fn list(&self, path: &str) -> Result<Vec<Entry>> {
        by_shell::list(self, path).await
    }

    /// Returns the entry at a path without following a link; `None` if the path does not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if that cannot be determined.
    async fn stat(&self, path: &str) -> Result<Option<Entry>> {
        by_shell::stat(self, path).await
    }

    /// Removes a file.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if the file is missing, or is a folder.
    async fn remove(&self, path: &str) -> Result<()> {
        by_shell::remove(self, path).await
    }

    /// Copies the content of a host folder to a folder of the sandbox, which is created: folders,
    /// and files with their modes. Existing files stay, except those of the same path, which are
    /// replaced. Links, pipes, sockets and devices are left out; the limits are 4 GiB and a million
    /// entries.
    ///
    /// The default implementation uses the sandbox's `tar`, in one stream.
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
    /// [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if a folder cannot be read or written, or
    /// exceeds the limits: some files may have been copied by then.
    async fn upload(&self, from: &Path, to: &str) -> Result<Copied> {
        archive::upload(self, from, to).await
    }

    /// Copies the content of a folder of the sandbox to a host folder, which is created; the
    /// reverse of [`upload`](Self::upload). Nothing is written outside of that folder, whatever the
    /// sandbox sends, and no file gets set-user-id or set-group-id bits.
    ///
    /// # Errors
    /// As for [`upload`](Self::upload).
    async fn download(&self, from: &str, to: &Path) -> Result<Copied> {
        archive::download(self, from, to).await
    }

    /// Pauses all programs, until [`resume`](Self::resume). Meanwhile no program starts, and files
    /// may be inaccessible.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) by default: pausing is unsupported.
    async fn pause(&self) -> Result<()> {
        Err(cannot(self, "pause"))
    }

    /// Resumes the programs.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) by default: pausing is unsupported.
    async fn resume(&self) -> Result<()> {
        Err(cannot(self, "resume"))
    }

    /// Takes a snapshot of the files; a sandbox of the same kind can start from its name. The
    /// snapshot outlives the sandbox.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) by default: snapshots are unsupported.
    async fn snapshot(&self) -> Result<String> {
        Err(cannot(self, "make snapshots"))
    }

    /// Ends all programs, and removes the sandbox's resources outside of its root. The sandbox must
    /// not be used afterwards. The default implementation does nothing: dropping the sandbox then
    /// cleans up.
    ///
    /// # Errors
    /// If the sandbox may still exist; its own documentation says when its remains are removed.
    async fn close(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the working directory of programs, from their point of view.
    fn root(&self) -> &str;

    /// Returns a directory for temporary files, from the programs' point of view. It is empty at
    /// first and removed with the sandbox.
    fn temp_dir(&self) -> &str;

    /// Returns the isolation guarantees.
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
