//! Paths whose files are executed by programs outside: hooks and settings of version control, editors and shells.

use std::path::{Component, Path};

/// Names of files and folders, in lower case. What lies in such a folder is protected too.
const NAMES: [&str; 9] = [".devcontainer", ".envrc", ".git", ".hg", ".husky", ".idea", ".svn", ".vscode", ".zed"];

/// True if a file at the path may be executed, or decide what is executed, by a program that did not come from the agent.
pub(super) fn is_protected(path: &Path) -> bool {
    path.components().any(|part| match part {
        // Some file systems do not distinguish letters by case, and drop dots and blanks at the end.
        Component::Normal(name) => {
            let name = name.to_string_lossy().to_ascii_lowercase();
            NAMES.contains(&name.trim_end_matches(['.', ' ']))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_and_settings_are_protected_wherever_they_lie_and_files_with_similar_names_are_not() {
        for path in [
            ".git",
            ".git/hooks/pre-commit",
            "a/.GIT/config",
            "sub/.envrc",
            ".vscode/tasks.json",
            ".git./config",
            "/x/.idea/y",
        ] {
            assert!(is_protected(Path::new(path)), "{path}");
        }
        for path in [".gitignore", "git/hooks", ".github/workflows/ci.yml", ".env", "a.git", "src/.vscode-test"] {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
    }
}
