//! Commands about what was.

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agent sessions
  agent sessions search bees
  agent sessions delete garden")]
pub(crate) struct Sessions {
    #[command(subcommand)]
    pub(crate) act: Option<SessionsAct>,
    /// Limit the number of sessions, newest first
    #[arg(long, default_value_t = 50, value_name = "NUMBER")]
    pub(crate) limit: usize,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsAct {
    /// Find sessions by names, titles and messages
    Search {
        /// Find this text, ignoring case
        text: String,
    },
    /// Delete sessions with all their entries
    Delete {
        /// Delete the sessions of these names
        #[arg(required = true)]
        sessions: Vec<String>,
    },
}

/// A run of a session.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Select the session
    pub(crate) session: String,
    /// Select the run by its id [default: the newest of the agent]
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without an option: the run's timeline, what it used, and its flame chart.

Examples:
  agent inspect garden
  agent inspect garden --messages
  agent inspect garden --changes --json")]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Show the conversation
    #[arg(long)]
    pub(crate) messages: bool,
    /// Show the changes between model calls
    #[arg(long)]
    pub(crate) changes: bool,
    /// Show the timeline
    #[arg(long)]
    pub(crate) timeline: bool,
    /// Show durations as a flame chart
    #[arg(long)]
    pub(crate) flame: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Nothing is called and nothing is written. The agent must be built as it was then; where it takes another path, that is said.

Examples:
  agent replay garden")]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) which: Which,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agent fork garden --step 0 --into garden-2 --message 'What stings?'")]
pub(crate) struct Fork {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Continue after this step; 0 is before the first
    #[arg(long, default_value_t = 0)]
    pub(crate) step: u32,
    /// Name the new session
    #[arg(long, value_name = "SESSION")]
    pub(crate) into: String,
    /// Replace the user's last message
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A run is SESSION, which means its newest, or SESSION#ID. It ends with 1 if they differ.

Examples:
  agent diff garden garden-2")]
pub(crate) struct Diff {
    /// Compare this run
    pub(crate) one: String,
    /// Compare with this run
    pub(crate) two: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agent resume garden")]
pub(crate) struct Resume {
    /// Select the session
    pub(crate) session: String,
    /// Resume even if the agent has changed
    #[arg(long = "allow-changed-agent")]
    pub(crate) allow_changed_agent: bool,
    /// Exit with 3 at an open question, instead of asking at the terminal
    #[arg(long)]
    pub(crate) no_input: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without an answer, the open questions are listed.

Examples:
  agent approve garden
  agent approve garden --allow
  agent approve garden --deny --reason 'not today'
  agent approve garden --edit '{\"path\": \"b.md\"}'
  agent approve garden --answer '[\"SQLite\"]'")]
pub(crate) struct Approve {
    /// Select the session
    pub(crate) session: String,
    /// Select the question by its id [default: all open questions]
    pub(crate) question: Option<String>,
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
    /// Give the model this reason
    #[arg(long, requires = "deny", value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Resume even if the agent has changed
    #[arg(long = "allow-changed-agent")]
    pub(crate) allow_changed_agent: bool,
}

#[derive(Debug, Args)]
#[group(multiple = false, id = "the_answer")]
pub(crate) struct AnswerArgs {
    /// Allow the call
    #[arg(long)]
    pub(crate) allow: bool,
    /// Deny the call
    #[arg(long)]
    pub(crate) deny: bool,
    /// Allow the call with these arguments, a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) edit: Option<String>,
    /// Answer with this JSON or text
    #[arg(long, value_name = "JSON")]
    pub(crate) answer: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
JSON lines hold whole sessions, and can be brought into another store. Markdown and HTML hold the conversations; the HTML is one file that
loads nothing.

Examples:
  agent export garden --format html > garden.html")]
pub(crate) struct Export {
    /// Select the sessions [default: all]
    pub(crate) sessions: Vec<String>,
    /// Set the output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Write one journal entry per line
    #[default]
    Jsonl,
    /// Write Markdown
    Markdown,
    /// Write an HTML report
    Html,
}
