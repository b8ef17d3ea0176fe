//! What can be said of a chat.

use std::path::PathBuf;

use clap::Args;

use super::Inputs;

#[derive(Debug, Args)]
#[command(after_help = "\
Enter sends, Alt-Enter begins a new line, Esc interrupts, Ctrl-R searches what was said before, `/help` tells the rest.

Examples:
  agent chat
  agent chat --session garden --dir docs")]
pub(crate) struct Chat {
    /// The agent's file
    #[arg(value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// The conversation; without one, a new one begins
    #[arg(long, short, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// The colours
    #[arg(long, value_enum, default_value_t)]
    pub(crate) theme: ThemeName,
}

/// The colours of `agent chat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ThemeName {
    /// For dark terminals
    #[default]
    Dark,
    /// For light terminals
    Light,
    /// No colours; also where NO_COLOR is set
    None,
}
