//! Error messages and help texts of `agent` and `agent-cli` follow the rules of their language.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Columns of a message or a help text.
const MOST: usize = 100;

/// Source files below a folder.
fn sources(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => folders.push(entry),
                false if entry.extension().is_some_and(|ending| ending == "rs") => files.push(entry),
                false => {}
            }
        }
    }
    assert!(!files.is_empty(), "{folder}");
    files
}

/// Returns the literal that begins after the first quote of `text`, with joined lines.
fn literal(text: &str) -> Option<String> {
    let start = text.find('"')?;
    if text[..start].contains([';', '{']) || text[..start].len() > 200 {
        return None;
    }
    let (mut out, mut chars) = (String::new(), text[start + 1..].chars().peekable());
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('"', _) => return Some(out),
            ('\\', Some('\n')) => {
                while chars.peek().is_some_and(|c| c.is_whitespace()) {
                    chars.next();
                }
            }
            ('\\', Some(_)) => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    None
}

/// The text without its `{placeholders}`, which have any length.
fn plain(message: &str) -> String {
    let (mut out, mut depth) = (String::new(), 0);
    for c in message.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

/// Names that begin with a capital letter.
const NAMES: [&str; 7] = ["AGENT_", "HTTPS_PROXY", "JSON", "OAuth", "PROVIDER:", "URL", "YAML"];

fn faults(message: &str) -> Vec<&'static str> {
    let mut faults = Vec::new();
    let is_name = NAMES.iter().any(|name| message.starts_with(name));
    if message.starts_with(|c: char| c.is_uppercase()) && !is_name {
        faults.push("begins with a capital letter");
    }
    if message.ends_with('.') && !message.ends_with("..") {
        faults.push("ends with a full stop");
    }
    if plain(message).lines().any(|line| line.chars().count() > MOST) {
        faults.push("is longer than 100 columns");
    }
    faults
}

#[test]
fn error_messages_are_short_clauses_in_lower_case() {
    let begins = ["Error::config(", "Error::new(", "Problem::new(", "Finding::ill(", ".help("];
    let mut found = (0, Vec::new());
    for file in ["src", "../agent/src"].into_iter().flat_map(sources) {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for begin in begins {
            for (at, _) in code.match_indices(begin) {
                let line = code[..at].lines().count();
                if code[..at].lines().last().is_some_and(|line| line.trim_start().starts_with("//")) {
                    continue;
                }
                let Some(message) = literal(&code[at + begin.len()..]) else { continue };
                found.0 += 1;
                found.1.extend(
                    faults(&message).into_iter().map(|why| format!("{}:{line}: {why}: {message}", file.display())),
                );
            }
        }
    }
    assert!(found.0 > 100, "{} messages", found.0);
    assert!(found.1.is_empty(), "{}", found.1.join("\n"));
}

/// Words that no imperative begins with.
const NOT_IMPERATIVE: [&str; 28] = [
    "a", "all", "also", "an", "for", "how", "if", "in", "it", "its", "no", "of", "one", "only", "some", "that", "the",
    "their", "these", "this", "those", "what", "when", "where", "whether", "which", "who", "whose",
];

#[test]
fn help_texts_are_short_imperatives() {
    let mut faulty = Vec::new();
    let mut count = 0;
    for file in sources("src/cli") {
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<_> = text.lines().collect();
        let is_doc = |line: &str| line.starts_with("    ") && line.trim_start().starts_with("///");
        for (at, line) in lines.iter().enumerate() {
            if !is_doc(line) || at > 0 && is_doc(lines[at - 1]) || file.ends_with("unused.rs") {
                continue;
            }
            let item = lines[at..].iter().find(|line| !line.trim_start().starts_with("///"));
            if item.is_some_and(|item| item.contains(" fn ")) {
                continue;
            }
            // The first paragraph, which clap shows.
            let shown: Vec<_> = lines[at..]
                .iter()
                .take_while(|line| is_doc(line) && line.trim() != "///")
                .map(|line| line.trim_start().trim_start_matches('/').trim())
                .collect();
            let help = shown.join(" ");
            count += 1;
            let first = help.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_lowercase();
            let mut why: Vec<_> = faults(&help.to_lowercase());
            if NOT_IMPERATIVE.contains(&first.as_str()) || first.ends_with("ing") {
                why.push("is no imperative");
            }
            if help.ends_with('.') && !help.ends_with("..") {
                why.push("ends with a full stop");
            }
            faulty.extend(why.into_iter().map(|why| format!("{}:{}: {why}: {help}", file.display(), at + 1)));
        }
    }
    assert!(count > 100, "{count} help texts");
    assert!(faulty.is_empty(), "{}", faulty.join("\n"));
}
