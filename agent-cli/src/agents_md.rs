//! Instructions of a project: its `AGENTS.md` files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agent::{
    Error, Flow, Middleware, Part, Result, async_trait,
    core::{ModelRequest, ModelResponse, RunCx, message::SystemMessage},
};

use crate::output::cannot;

const NAME: &str = "AGENTS.md";

/// Maximum size of all files together, in bytes.
const MOST: usize = 64 << 10;

/// Adds the instructions of a project to the system prompt.
#[derive(Debug)]
pub(crate) struct ProjectInstructions(String);

impl ProjectInstructions {
    /// Reads the `AGENTS.md` files of `folder` and of the folders above it, up to the root of the
    /// repository; the file nearest to `folder` comes last, and so takes precedence.
    ///
    /// # Errors
    /// If there is no such file, one cannot be read, or they are too large.
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        let folder = folder.canonicalize().map_err(|e| cannot(folder.display(), e))?;
        let files = files(&folder);
        if files.is_empty() {
            let message = format!("--agents-md: there is no {NAME} in {} and above it", folder.display());
            return Err(Error::config(message));
        }
        let mut text = String::from("Instructions of the project:");
        for file in &files {
            let said = fs::read_to_string(file).map_err(|e| cannot(file.display(), e))?;
            text += &format!("\n\n<file path=\"{}\">\n{}\n</file>", file.display(), said.trim());
        }
        match text.len() > MOST {
            true => Err(Error::config(format!(
                "--agents-md: the files have {} KiB; the most are {}",
                text.len() >> 10,
                MOST >> 10
            ))),
            false => Ok(Self(text)),
        }
    }
}

/// Returns the existing files, the outermost first. Outside of a repository, only the file of the
/// folder itself.
fn files(folder: &Path) -> Vec<PathBuf> {
    let depth = folder.ancestors().position(|above| above.join(".git").exists()).unwrap_or(0);
    let mut files: Vec<_> = folder.ancestors().take(depth + 1).map(|above| above.join(NAME)).collect();
    files.retain(|file| file.is_file());
    files.reverse();
    files
}

#[async_trait]
impl Middleware for ProjectInstructions {
    fn name(&self) -> &str {
        "agents_md"
    }

    async fn before_model(&self, _: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        let system = req.system.get_or_insert_with(|| SystemMessage::new(Vec::new()));
        system.parts_mut().push(Part::text(self.0.clone()));
        Ok(Flow::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_up_to_the_repository_are_read_and_the_nearest_comes_last() {
        let root = tempfile::tempdir().expect("a folder");
        let inner = root.path().join("repository/part");
        fs::create_dir_all(&inner).expect("made");
        fs::create_dir(root.path().join("repository/.git")).expect("made");
        for (place, text) in [("", "outside"), ("repository", "whole"), ("repository/part", "part")] {
            fs::write(root.path().join(place).join(NAME), text).expect("written");
        }
        let ProjectInstructions(text) = ProjectInstructions::of(&inner).expect("read");
        let at = |word: &str| text.find(&format!("\n{word}\n"));
        assert!(at("whole").is_some() && at("whole") < at("part") && at("outside").is_none(), "{text}");
    }

    #[test]
    fn a_folder_without_instructions_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = ProjectInstructions::of(folder.path()).expect_err("none");
        assert!(error.message().contains("there is no AGENTS.md"), "{error}");
    }
}
