//! Refuses options of all commands that have no effect on the given one.

use clap::{ArgMatches, parser::ValueSource};

/// Options of [`Global`](super::Global) that describe an agent, by their ids.
const AGENT: [&str; 9] = ["file", "model", "system", "dir", "shell", "set", "lenient", "allow_tool", "name"];

/// Options that a command uses, beside `--json` and `--providers`.
fn used(command: &str) -> Vec<&'static str> {
    let mut agent_and_store = AGENT.to_vec();
    agent_and_store.push("store");
    match command {
        "sessions" | "inspect" | "export" | "diff" => vec!["file", "set", "name", "store"],
        // `name` is an argument of its schedules, too.
        "queue" => vec!["name", "store"],
        "store" => vec!["store"],
        "tools" => AGENT.to_vec(),
        "eval" => AGENT.into_iter().filter(|id| *id != "file").collect(),
        "doctor" => vec!["file", "model", "dir", "shell", "set", "lenient", "store"],
        "new" => vec!["model", "system"],
        "models" | "schema" | "completions" | "man" => Vec::new(),
        _ => agent_and_store,
    }
}

/// Returns why an option of the command line cannot be used, if one has no effect.
///
/// A value that an environment variable gives is a default for all commands, and never refused.
pub(crate) fn refused(matches: &ArgMatches) -> Option<String> {
    let (command, _) = matches.subcommand()?;
    let used = used(command);
    let given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let unused = AGENT.into_iter().chain(["store"]).filter(|id| !used.contains(id)).find(given)?;
    let option = unused.replace('_', "-");
    Some(format!("--{option} has no effect on 'agent {command}': remove it"))
}
