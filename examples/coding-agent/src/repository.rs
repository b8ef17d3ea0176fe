//! The repository: a copy in a temporary directory, in which the agent works.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use agent::{
    prelude::*,
    tools::sandbox::{self, Sandbox},
};
use tempfile::TempDir;

use crate::verify::output_of;

/// Test command of the sample.
pub(crate) const TEST: &str = "python3 -B -m unittest -q";

const FILES: [(&str, &str); 3] = [
    ("shipping.py", include_str!("../fixture/shipping.py")),
    ("test_shipping.py", include_str!("../fixture/test_shipping.py")),
    ("README.md", include_str!("../fixture/README.md")),
];

/// A copy of a repository, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Repository(TempDir);

impl Repository {
    /// Creates a small repository with a failing test.
    pub(crate) fn sample() -> Result<Self> {
        let folder = temporary()?;
        for (name, content) in FILES {
            fs::write(folder.path().join(name), content)
                .map_err(|e| Error::config("the sample cannot be written").with_source(e))?;
        }
        git(folder.path(), &["init", "--quiet"])?;
        git(folder.path(), &["add", "."])?;
        let author = ["-c", "user.name=Sample", "-c", "user.email=sample@example.org"];
        git(folder.path(), &[author.as_slice(), &["commit", "--quiet", "-m", "Add shipping costs"]].concat())?;
        Ok(Self(folder))
    }

    /// Copies the newest commit of a repository.
    pub(crate) fn copy_of(path: &Path) -> Result<Self> {
        let folder = temporary()?;
        let from = std::path::absolute(path).map_err(|e| Error::config("no such path").with_source(e))?;
        let from = from.display().to_string();
        git(folder.path(), &["clone", "--quiet", "--no-hardlinks", &from, "."])?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Returns the changes since the newest commit. Git runs in the sandbox: the programs of the model
/// may have changed its configuration and its hooks.
pub(crate) async fn patch(sandbox: &dyn Sandbox) -> Result<String> {
    let line = "git -c safe.directory='*' add --intent-to-add . && git -c safe.directory='*' diff";
    let (output, exit) = output_of(sandbox, sandbox::Command::shell(line)).await?;
    if exit.is_success() { Ok(output) } else { Err(Error::tool(format!("git failed in the sandbox: {output}"))) }
}

fn temporary() -> Result<TempDir> {
    TempDir::new().map_err(|e| Error::config("no temporary directory can be created: set TMPDIR").with_source(e))
}

/// Runs git in a directory that no program of the model has written yet.
fn git(directory: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("git");
    let output = command.current_dir(directory).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|e| Error::config("git cannot be started: install it").with_source(e))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::config(format!("git {}: {}", arguments.join(" "), said.trim())))
}
