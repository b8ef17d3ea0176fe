//! Arguments that make a harmless program write, delete or run something.

use super::Word;

/// Arguments, by the words that a command begins with. A pattern that allows must name them.
const HAZARDS: &[(&[&str], &[&str])] = &[
    (&["curl"], &["-o", "-O", "-K", "-T", "-d", "-F", "-X", "--output", "--remote-name", "--config", "--upload-file"]),
    (&["curl"], &["--data", "--form", "--request", "--output-dir", "--dump-header", "-D", "--cookie-jar", "-c"]),
    (&["date"], &["-s", "--set"]),
    (&["fd"], &["-x", "-X", "--exec", "--exec-batch"]),
    (&["find"], &["-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls"]),
    (&["git"], &["-c", "--config-env", "--exec-path", "--output", "--upload-pack", "--receive-pack", "--exec"]),
    (&["git"], &["--ext-diff", "--textconv", "--open-files-in-pager", "-O", "--git-dir", "--work-tree", "config"]),
    (&["git"], &["--global", "--system", "--file", "--add", "--unset", "--unset-all", "--replace-all", "--edit"]),
    (&["git", "branch"], &["-d", "-D", "-m", "-M", "-C", "-f", "-u", "--delete", "--move", "--copy", "--force"]),
    (&["git", "push"], &["-f", "-d", "--force", "--force-with-lease", "--delete", "--mirror", "--prune"]),
    (&["git", "tag"], &["-d", "-f", "--delete", "--force"]),
    (&["man"], &["-P", "-H", "--pager", "--html"]),
    (&["rg"], &["--pre", "--hostname-bin", "--search-zip"]),
    (&["rsync"], &["-e", "--rsh", "--rsync-path", "--delete", "--remove-source-files"]),
    (&["sort"], &["-o", "-T", "--output", "--compress-program", "--temporary-directory"]),
    (&["tar"], &["-I", "-F", "--checkpoint-action", "--to-command", "--use-compress-program", "--info-script"]),
    (&["tree"], &["-o"]),
    (&["yq"], &["-i", "--inplace"]),
];

/// True if the argument is one that a pattern must name to allow it.
pub(super) fn is_hazard(words: &[Word], argument: &Word) -> bool {
    let begins =
        |prefix: &[&str]| prefix.len() <= words.len() && prefix.iter().zip(words).all(|(p, word)| word.text == *p);
    let listed = HAZARDS.iter().filter(|(prefix, _)| begins(prefix)).flat_map(|(_, hazards)| *hazards);
    listed.into_iter().any(|hazard| says(&argument.text, hazard))
}

/// True if the argument says `option`: with a value, shortened as far as programs let users do, or among other letters.
fn says(argument: &str, option: &str) -> bool {
    let name = argument.split('=').next().unwrap_or_default();
    match (name.strip_prefix("--"), option.strip_prefix("--")) {
        (Some(given), Some(long)) => !given.is_empty() && long.starts_with(given),
        (None, None) if option.len() == 2 && option.starts_with('-') => {
            name.starts_with('-') && name.contains(&option[1..])
        }
        _ => name == option,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_found_however_it_is_written() {
        for (argument, option, wanted) in [
            ("--output=f", "--output", true),
            ("--out", "--output", true),
            ("--", "--output", false),
            ("--outputs", "--output", false),
            ("-of", "-o", true),
            ("-uo", "-o", true),
            ("o", "-o", false),
            ("-delete", "-delete", true),
            ("config", "config", true),
        ] {
            assert_eq!(says(argument, option), wanted, "{argument} {option}");
        }
    }
}
