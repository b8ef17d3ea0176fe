//! [`Workspace`]: tools for the files below one directory.

mod change;
mod edit;
mod glob;
mod grep;
#[cfg(feature = "sandbox")]
mod in_sandbox;
mod list;
mod names;
mod notebook;
mod patch;
#[cfg(feature = "pdf")]
mod pdf;
pub(crate) mod read;
pub(crate) mod text;
mod write;

use std::{path::Path, time::Duration};

use agent_core::Result;

use crate::{
    ToolSet,
    files::{self, Files, place, seen, walk},
};

/// Tools for the files below one directory: `read_file`, `read_many_files`, `list_files`, `glob`,
/// `grep`, `write_file`, `edit_file`, `multi_edit`, `apply_patch` and `edit_notebook`.
///
/// No path leads out of the directory: neither `..`, nor an absolute path, nor a symbolic link,
/// even if it is changed between check and use, since the operating system resolves every path
/// beneath an open handle of the directory. A file with several hard links may also exist outside,
/// so it is not read unless [`allow_hard_links`](Self::allow_hard_links) is set. Devices, pipes and
/// sockets are never opened.
///
/// Parameters have aliases that models know from training: `file_path`, `old_string`, `new_string`,
/// `new_source` and others are mapped to those of the schema.
///
/// An agent cannot replace or remove a whole file unless it has read all of the current content, in
/// an earlier message. Parts of a file can be changed without that; the output notes if the file
/// has changed since it was read. The record of contents that agents have read exists per session,
/// and in this process only.
///
/// Files that programs outside execute, or that say what they execute, are read and not changed, unless
/// [`allow_protected`](Self::allow_protected) says so: `.git`, `.hg`, `.svn`, `.husky`, `.envrc`, `.vscode`, `.idea`, `.zed` and
/// `.devcontainer`, at any depth.
///
/// Listing, finding and searching leave out what `.gitignore` files leave out, and hidden files. Files are replaced as a
/// whole: a reader sees the old content or the new one, never a part.
///
/// ```
/// use agent_tools::Workspace;
///
/// let dir = tempfile::tempdir().expect("a directory");
/// let tools = Workspace::open(dir.path())?.read_only().max_file_bytes(1 << 20).tools();
/// assert_eq!(tools.names(), ["read_file", "read_many_files", "list_files", "glob", "grep"]);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Workspace {
    files: Files,
    read_only: bool,
}

impl Workspace {
    /// Opens the files below `dir`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if `dir` is not a directory that can be
    /// opened.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Ok(Self { files: Files::open_root(dir.as_ref(), "workspace")?, read_only: false }.protected(true))
    }

    /// Uses the files of a [`Sandbox`](crate::sandbox::Sandbox), local or remote: with
    /// [`Shell`](crate::Shell) over the same sandbox, commands and tools see the same files.
    ///
    /// Paths are those that programs see, relative to the sandbox's root or absolute: the sandbox
    /// confines them. A file moved by a patch gets the permissions of a new file, and
    /// [`allow_hard_links`](Self::allow_hard_links) has no effect. Listing and searching access the
    /// sandbox folder by folder and file by file, up to [`search_timeout`](Self::search_timeout):
    /// with a remote sandbox, `grep` in its shell is faster.
    ///
    /// ```
    /// use agent_tools::{Workspace, sandbox::MemorySandbox};
    ///
    /// let tools = Workspace::over(MemorySandbox::new()).tools();
    /// assert_eq!(tools.names().len(), 10);
    /// ```
    #[cfg(feature = "sandbox")]
    pub fn over(sandbox: impl crate::sandbox::Sandbox) -> Self {
        Self::shared(std::sync::Arc::new(sandbox))
    }

    /// Like [`over`](Self::over), for a shared sandbox.
    #[cfg(feature = "sandbox")]
    pub fn shared(sandbox: std::sync::Arc<dyn crate::sandbox::Sandbox>) -> Self {
        Self { files: Files::of(in_sandbox::InSandbox::new(sandbox), "sandbox"), read_only: false }.protected(true)
    }

    /// Lets tools change protected files too: those of version control, and the settings of editors and shells. For a directory that
    /// nobody works in outside of a sandbox.
    #[must_use]
    pub fn allow_protected(self) -> Self {
        self.protected(false)
    }

    fn protected(mut self, are: bool) -> Self {
        self.files.limits.protects = are;
        self
    }

    /// Removes the tools that change files.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Sets the maximum size in bytes of files that are read, searched and written. Default: 10
    /// MiB.
    #[must_use]
    pub fn max_file_bytes(mut self, most: u64) -> Self {
        self.files.limits.file_bytes = most;
        self
    }

    /// Sets the approximate maximum of output bytes for the model; omissions are noted. Default: 64
    /// KiB.
    #[must_use]
    pub fn max_output_bytes(mut self, most: usize) -> Self {
        self.files.limits.output_bytes = most;
        self
    }

    /// Sets the timeout of listing, finding and searching; results so far are shown. Default: 10
    /// seconds.
    #[must_use]
    pub fn search_timeout(mut self, longest: Duration) -> Self {
        self.files.limits.search_time = longest;
        self
    }

    /// Reads files with several hard links too, which package managers create.
    #[must_use]
    pub fn allow_hard_links(mut self) -> Self {
        self.files.limits.hard_links = true;
        self
    }

    /// Returns the directory; for a sandbox, its root as programs see it.
    pub fn path(&self) -> &Path {
        self.files.root_path()
    }

    /// Returns the files, and whether they may be changed: for remote agents.
    #[cfg(any(feature = "a2a", feature = "acp"))]
    pub(crate) fn files(&self) -> (Files, bool) {
        (self.files.clone(), !self.read_only)
    }

    /// Returns the tools.
    pub fn tools(&self) -> ToolSet {
        let files = || self.files.clone();
        let reading = ToolSet::new("workspace")
            .tool(read::tool(files()))
            .tool(read::many(files()))
            .tool(list::tool(files()))
            .tool(glob::tool(files()))
            .tool(grep::tool(files()));
        if self.read_only {
            return reading;
        }
        reading
            .tool(write::tool(files()))
            .tool(edit::EditFile::<edit::OneEdit>::new(files()))
            .tool(edit::EditFile::<edit::ManyEdits>::new(files()))
            .tool(patch::ApplyPatch(files()))
            .tool(notebook::tool(files()))
    }
}
