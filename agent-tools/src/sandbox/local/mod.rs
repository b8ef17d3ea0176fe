//! [`LocalSandbox`]: programs of this machine, confined to a directory.

mod bubblewrap;
mod builder;
mod cgroup;
mod gate;
mod group;
mod jail;
mod landlock;
mod launch;
mod programs;
mod room;
mod seccomp;
mod snapshot;
mod temp;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use agent_core::{Error, Result, async_trait};
use bytes::Bytes;
use cap_std::fs::Dir;

pub use self::{builder::LocalSandboxBuilder, jail::Isolation};
use self::{jail::IsolationBackend, launch::Plan, programs::Programs, snapshot::Snapshots, temp::Temp};
use super::{
    Command, Copied, Entry, Guarantees, Limits, Process, Sandbox,
    tree::{self, Folder, uncopied},
};
use crate::{blocking::blocking, files::Files};

/// Programs of this machine, confined to a directory by means of its kernel. Linux only.
///
/// With [`bwrap`](Isolation::Bubblewrap) installed (the package `bubblewrap`), a program sees its
/// own minimal system: the directory, a temporary one, `/usr` and the necessary parts of `/etc`;
/// its own processes; an empty network namespace. Without it, [landlock and
/// seccomp](Isolation::Landlock) block forbidden operations: programs then also cannot open
/// sockets, see `/proc`, watch files, or change their modes, owners and times. With both, no
/// process survives the end of a command or the death of the application.
/// [`guarantees`](Sandbox::guarantees) reports the guarantees on this machine, and
/// [`build`](LocalSandboxBuilder::build) fails on a machine that cannot isolate files, network and
/// processes, unless [`Isolation::None`] is requested.
///
/// Disk usage is not limited, only the size of each file. Files in the directory are under the
/// programs' control: running them outside later (git hooks, shell settings) runs their code.
///
/// ```
/// use agent_tools::sandbox::{Command, LocalSandbox, Sandbox};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agent_core::Result<()> {
/// let dir = tempfile::tempdir().expect("a directory");
/// let sandbox = match LocalSandbox::builder(dir.path()).build() {
///     Ok(sandbox) => sandbox,
///     Err(refused) => return Ok(println!("{refused}")),
/// };
/// println!("{}", sandbox.guarantees());
/// let mut program = sandbox.start(Command::shell("echo hello > greeting; cat /etc/shadow")).await?;
/// while let Some(output) = program.output().await {
///     println!("{}", String::from_utf8_lossy(&output));
/// }
/// assert!(!program.exit().await?.is_success());
/// assert_eq!(sandbox.read("greeting").await?, "hello\n");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LocalSandbox {
    work: Files,
    temp: Files,
    /// Path of the directory `temp`, as programs see it.
    temp_path: String,
    env: Arc<BTreeMap<String, String>>,
    limits: Limits,
    jail: Arc<IsolationBackend>,
    guarantees: Guarantees,
    snapshots: Option<Snapshots>,
    programs: Arc<Programs>,
    /// Removed with the last clone.
    _temp: Arc<Temp>,
}

impl LocalSandbox {
    /// Returns a builder for a sandbox whose programs work in `dir`, which must exist.
    pub fn builder(dir: impl Into<PathBuf>) -> LocalSandboxBuilder {
        LocalSandboxBuilder::new(dir.into())
    }

    /// Returns the directory that programs work in.
    pub fn path(&self) -> &Path {
        self.work.root_path()
    }

    /// Returns the file store that holds a path, and the path within it.
    fn place(&self, path: &str) -> Result<(Files, PathBuf)> {
        if let Ok(below) = self.temp.relative(path)
            && Path::new(path.trim()).is_absolute()
        {
            return Ok((self.temp.clone(), below));
        }
        Ok((self.work.clone(), self.work.relative(path)?))
    }

    fn plan(&self, command: Command) -> Result<Plan> {
        let dir = match &command.dir {
            Some(dir) => {
                let below = self.work.relative(dir)?;
                // The path may be a link to a folder.
                self.work.list(&below).map_err(|_| Error::tool(format!("'{dir}' is no directory of the sandbox")))?;
                self.path().join(below)
            }
            None => self.path().to_owned(),
        };
        gate::check_env(&command.env)?;
        let env = self.env.iter().map(|(name, value)| (name.clone(), value.clone())).chain(command.env).collect();
        let program = [command.program].into_iter().chain(command.args).collect();
        Ok(Plan { program, dir, env, limits: self.limits, jail: self.jail.clone(), programs: self.programs.clone() })
    }

    /// Opens a folder of the sandbox. Links cannot lead out of the sandbox.
    fn folder(&self, path: &str, make: bool) -> Result<Dir> {
        let (files, below) = self.place(path)?;
        let root = tree::open(files.root_path(), false)?;
        let below = if below.as_os_str().is_empty() { PathBuf::from(".") } else { below };
        let made = if make { root.create_dir_all(&below) } else { Ok(()) };
        let opened = made.and_then(|()| root.open_dir(&below));
        opened.map_err(|e| Error::tool(format!("'{path}' is no directory of the sandbox: {e}")))
    }
}

#[async_trait]
impl Sandbox for LocalSandbox {
    async fn start(&self, command: Command) -> Result<Process> {
        let sandbox = self.clone();
        blocking(move || launch::launch(sandbox.plan(command)?)).await
    }

    async fn read(&self, path: &str) -> Result<Bytes> {
        let (files, path) = self.place(path)?;
        blocking(move || files.read(&path)).await.map(Bytes::from)
    }

    async fn write(&self, path: &str, content: Bytes) -> Result<()> {
        let (files, path) = self.place(path)?;
        blocking(move || files.replace(&path, &content)).await?;
        Ok(())
    }

    async fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let (files, path) = self.place(path)?;
        blocking(move || files.list(&path)).await
    }

    async fn stat(&self, path: &str) -> Result<Option<Entry>> {
        let (files, path) = self.place(path)?;
        blocking(move || files.stat(&path)).await
    }

    async fn remove(&self, path: &str) -> Result<()> {
        let (files, path) = self.place(path)?;
        blocking(move || files.remove(&path)).await
    }

    async fn upload(&self, from: &Path, to: &str) -> Result<Copied> {
        let (from, to) = (tree::open(from, false)?, self.folder(to, true)?);
        blocking(move || copy(&from, to)).await
    }

    async fn download(&self, from: &str, to: &Path) -> Result<Copied> {
        let (from, to) = (self.folder(from, false)?, tree::open(to, true)?);
        blocking(move || copy(&from, to)).await
    }

    /// Pauses all programs with their descendants. Files remain accessible. With
    /// [`Isolation::None`] and without control groups, detached processes of a command are not
    /// found, and continue.
    async fn pause(&self) -> Result<()> {
        let programs = self.programs.clone();
        blocking(move || programs.pause()).await
    }

    async fn resume(&self) -> Result<()> {
        let programs = self.programs.clone();
        blocking(move || {
            programs.resume();
            Ok(())
        })
        .await
    }

    /// Copies the directory to [the folder of snapshots](LocalSandboxBuilder::snapshots), for
    /// [`restored`](LocalSandboxBuilder::restored): at most 4 GiB and a million entries. Concurrent
    /// writes of programs may be captured partially. Links stay links; pipes, sockets and devices
    /// are left out.
    async fn snapshot(&self) -> Result<String> {
        let no_folder = || Error::config("this sandbox has no folder for snapshots: give one with .snapshots(folder)");
        let (snapshots, dir) = (self.snapshots.clone().ok_or_else(no_folder)?, self.path().to_owned());
        blocking(move || snapshots.keep(&dir)).await
    }

    fn root(&self) -> &str {
        self.path().to_str().expect("it was looked at when the sandbox was built")
    }

    fn temp_dir(&self) -> &str {
        &self.temp_path
    }

    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }
}

fn copy(from: &Dir, to: Dir) -> Result<Copied> {
    let mut to = Folder::new(to);
    let copied = tree::walk(from, &mut to).and_then(|copied| to.finish().map(|()| copied));
    copied.map_err(|e| uncopied(&e))
}
