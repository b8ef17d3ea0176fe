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
    /// Sessions at most, the newest first
    #[arg(long, default_value_t = 50, value_name = "NUMBER")]
    pub(crate) limit: usize,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsAct {
    /// Find sessions by their names, titles and what was said in them
    Search {
        /// What to look for, in small or capital letters
        text: String,
    },
    /// Delete sessions, with everything in them
    Delete {
        /// Their names
        #[arg(required = true)]
        sessions: Vec<String>,
    },
}

/// A run of a session.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The session
    pub(crate) session: String,
    /// The run, by its id; without one, the newest of the agent
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
    /// The conversation
    #[arg(long)]
    pub(crate) messages: bool,
    /// What each call of the model was told that the one before was not
    #[arg(long)]
    pub(crate) changes: bool,
    /// What happened when
    #[arg(long)]
    pub(crate) timeline: bool,
    /// What took how long, as a chart
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
    /// After which step; 0 is before the first
    #[arg(long, default_value_t = 0)]
    pub(crate) step: u32,
    /// The new session
    #[arg(long, value_name = "SESSION")]
    pub(crate) into: String,
    /// Say this in the place of what the user said last
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A run is SESSION, which means its newest, or SESSION#ID. It ends with 1 if they differ.

Examples:
  agent diff garden garden-2")]
pub(crate) struct Diff {
    /// One run
    pub(crate) one: String,
    /// The other
    pub(crate) two: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agent resume garden")]
pub(crate) struct Resume {
    /// The session
    pub(crate) session: String,
    /// Go on though the agent is another than it was
    #[arg(long)]
    pub(crate) despite_changes: bool,
    /// Do not ask at the terminal: end with 3 where a question is open
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
    /// The session
    pub(crate) session: String,
    /// The question, by its id; without one, the answer is to all that are open
    pub(crate) question: Option<String>,
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
    /// Why it is not to run, for the model
    #[arg(long, requires = "deny", value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Go on though the agent is another than it was
    #[arg(long)]
    pub(crate) despite_changes: bool,
}

#[derive(Debug, Args)]
#[group(multiple = false, id = "the_answer")]
pub(crate) struct AnswerArgs {
    /// Let the call run
    #[arg(long)]
    pub(crate) allow: bool,
    /// Do not let it run
    #[arg(long)]
    pub(crate) deny: bool,
    /// Let it run with these arguments, a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) edit: Option<String>,
    /// Answer with this, JSON or else a text
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
    /// The sessions; without one, all of them
    pub(crate) sessions: Vec<String>,
    /// How it is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One entry of the journal a line
    #[default]
    Jsonl,
    /// A text
    Markdown,
    /// A page
    Html,
}
