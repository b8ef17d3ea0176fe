//! Prompts that are saved as commands: the files of `.agent/commands`.

use std::{fs, path::Path};

/// Folder of the files, below the working directory.
const FOLDER: &str = ".agent/commands";

/// Place in a prompt for the text after the command.
const ARGUMENTS: &str = "$ARGUMENTS";

/// A prompt that a command stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedPrompt {
    /// Name of the command, with its slash.
    pub(crate) name: String,
    /// Description in one line.
    pub(crate) about: String,
    text: String,
}

/// Returns the prompts of the folder, by name. `NAME.md` is the command `/NAME`; its description is
/// `description` in its front matter, or else its first line. Unreadable files are ignored.
pub(crate) fn saved_prompts(directory: &Path) -> Vec<SavedPrompt> {
    let files = fs::read_dir(directory.join(FOLDER)).into_iter().flatten().flatten();
    let mut prompts: Vec<_> = files.filter_map(|file| read(&file.path())).collect();
    prompts.sort_by(|a, b| a.name.cmp(&b.name));
    prompts
}

fn read(file: &Path) -> Option<SavedPrompt> {
    let name = file.file_name()?.to_str()?.strip_suffix(".md")?;
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(is_word) {
        return None;
    }
    let said = fs::read_to_string(file).ok()?;
    let (head, text) = match said.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")) {
        Some((head, text)) => (head, text),
        None => ("", said.as_str()),
    };
    let text = text.trim();
    let described = head.lines().find_map(|line| line.strip_prefix("description:"));
    let about = described.map(|about| about.trim().trim_matches(['"', '\'']));
    let about = about.or_else(|| text.lines().next()).unwrap_or_default();
    let about = about.chars().take(80).collect();
    (!text.is_empty()).then(|| SavedPrompt { name: format!("/{name}"), about, text: text.to_owned() })
}

/// Returns the prompt that a line with a command stands for; `None` for other lines and unknown
/// commands. Text after the command replaces `$ARGUMENTS`, or is appended.
pub(crate) fn expanded(prompts: &[SavedPrompt], line: &str) -> Option<String> {
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let prompt = prompts.iter().find(|prompt| prompt.name == name)?;
    let rest = rest.trim();
    Some(if prompt.text.contains(ARGUMENTS) {
        prompt.text.replace(ARGUMENTS, rest)
    } else if rest.is_empty() {
        prompt.text.clone()
    } else {
        format!("{}\n\n{rest}", prompt.text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_command_whose_arguments_are_filled_in() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join(FOLDER);
        fs::create_dir_all(&folder).expect("made");
        for (name, text) in [
            ("review.md", "---\ndescription: Review a change\n---\nReview $ARGUMENTS with care.\n"),
            ("plan.md", "Plan the work.\n"),
            ("empty.md", "\n"),
            ("not a name.md", "x"),
            ("other.txt", "x"),
        ] {
            fs::write(folder.join(name), text).expect("written");
        }
        let prompts = saved_prompts(root.path());
        let told: Vec<_> = prompts.iter().map(|prompt| (prompt.name.as_str(), prompt.about.as_str())).collect();
        assert_eq!(told, [("/plan", "Plan the work."), ("/review", "Review a change")]);
        let said = |line: &str| expanded(&prompts, line);
        assert_eq!(said("/review the last commit").as_deref(), Some("Review the last commit with care."));
        assert_eq!(said("/plan for a week").as_deref(), Some("Plan the work.\n\nfor a week"));
        assert_eq!((said("/plan").as_deref(), said("/none"), said("plan")), (Some("Plan the work."), None, None));
    }

    #[test]
    fn without_the_folder_there_are_none() {
        assert_eq!(saved_prompts(tempfile::tempdir().expect("a folder").path()), []);
    }
}
