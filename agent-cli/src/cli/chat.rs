//! Command line of `agent chat`.

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
    /// Load the agent from this file
    #[arg(value_name = "FILE")]
    pub(crate) agent_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Continue this conversation [default: a new one]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Set the colours
    #[arg(long, value_enum, default_value_t)]
    pub(crate) theme: ThemeName,
}

/// The colours of `agent chat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ThemeName {
    /// Use colours for dark terminals
    #[default]
    Dark,
    /// Use colours for light terminals
    Light,
    /// Use no colours, as with NO_COLOR
    None,
}
