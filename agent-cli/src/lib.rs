//! The program `agent` as a function: [`run`] does what its command line says.
//!
//! Each command is a file. Shared modules, from the ground up: `cli` (the command line), `output` (what is shown, and how the
//! program ends), `store`, `telemetry`, `load` (the agent that is meant), `follow` (served agents and their files), `run` (a run, with its
//! progress and its questions).

mod agents_md;
#[cfg(feature = "chat")]
mod chat;
mod cli;
mod commands;
#[cfg(feature = "serve")]
mod engine;
mod follow;
mod inspect;
mod listing;
mod load;
mod output;
mod run;
mod saved_prompts;
mod store;
mod team;
mod telemetry;

use std::{ffi::OsString, process::ExitCode};

use agent::{Error, Result, error::ErrorKind};
use clap::{CommandFactory, FromArgMatches};

use self::{
    cli::{Cli, Command},
    output::End,
};

/// Does what the words of a command line say, of which the first is the program's name, and gives how that ended.
///
/// Output goes to standard output and standard error, as from the program.
///
/// ```
/// let ended = agent_cli::run(["agent", "run", "--store", "memory", "What is a journal?"]);
/// assert_eq!(ended, std::process::ExitCode::SUCCESS);
/// ```
///
/// # Panics
/// If it is called on a thread of an asynchronous runtime: it has its own.
pub fn run(words: impl IntoIterator<Item = impl Into<OsString>>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    let cli = match parsed(&words) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && words.iter().any(|word| word == "--json") => {
            output::tell_json(&Error::config(error.to_string()));
            return End::Usage.into();
        }
        Err(error) => {
            drop(error.print()); // nobody reads any more
            return if error.use_stderr() { End::Usage.into() } else { End::Finished.into() };
        }
    };
    let tell = if cli.global.json { output::tell_json } else { output::tell };
    // What needs neither an agent nor a store needs no runtime.
    let ended = load::providers(&cli.global).and_then(|()| match &cli.command {
        Command::Completions(wanted) => commands::completions(wanted.of),
        Command::Man => commands::man(),
        Command::Schema => commands::schema(),
        Command::New(wanted) => commands::new(wanted, &cli.global),
        Command::Models(wanted) => commands::models(wanted, &cli.global),
        _ => on_runtime(cli),
    });
    ended
        .unwrap_or_else(|error| {
            tell(&error);
            End::of(&error)
        })
        .into()
}

/// Parses the command line.
fn parsed(words: &[OsString]) -> std::result::Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let matches = command.try_get_matches_from_mut(words)?;
    if let Some(why) = cli::refused(&matches) {
        return Err(command.error(clap::error::ErrorKind::ArgumentConflict, why));
    }
    Cli::from_arg_matches(&matches)
}

fn on_runtime(cli: Cli) -> Result<End> {
    let failed = |e| Error::new(ErrorKind::Config, "the program cannot start its threads").with_source(e);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    let ended = runtime.block_on(command(cli));
    // A thread that waits for a line of the terminal must not keep the program.
    runtime.shutdown_background();
    telemetry::finish();
    ended
}

async fn command(cli: Cli) -> Result<End> {
    let global = cli.global;
    match cli.command {
        Command::Run(wanted) => commands::run(wanted, global).await,
        #[cfg(feature = "chat")]
        Command::Chat(wanted) => Box::pin(chat::chat(wanted, global)).await,
        Command::Sessions(wanted) => commands::sessions(wanted, &global).await,
        Command::Inspect(wanted) => inspect::inspect(wanted, &global).await,
        Command::Replay(wanted) => commands::replay(wanted, &global).await,
        Command::Fork(wanted) => commands::fork(wanted, &global).await,
        Command::Diff(wanted) => commands::diff(&wanted, &global).await,
        Command::Resume(wanted) => commands::resume(wanted, &global).await,
        Command::Approve(wanted) => commands::approve(wanted, &global).await,
        Command::Export(wanted) => commands::export(wanted, &global).await,
        Command::Eval(wanted) => Box::pin(commands::eval(&wanted, &global)).await,
        Command::Tools(wanted) => commands::tools(wanted, &global).await,
        Command::Doctor(wanted) => commands::doctor(&wanted, &global).await,
        #[cfg(feature = "serve")]
        Command::Serve(wanted) => Box::pin(commands::serve(*wanted, &global)).await,
        #[cfg(feature = "serve")]
        Command::Worker(wanted) => Box::pin(commands::worker(wanted, &global)).await,
        #[cfg(feature = "serve")]
        Command::Queue(wanted) => commands::queue(wanted, &global).await,
        #[cfg(feature = "serve")]
        Command::Store(wanted) => commands::maintain(wanted, &global).await,
        Command::Acp(wanted) => Box::pin(commands::acp(wanted, &global)).await,
        Command::Stdio(wanted) => Box::pin(commands::stdio(wanted, &global)).await,
        Command::Mcp(wanted) => commands::mcp(wanted, &global).await,
        Command::Studio(wanted) => commands::studio(wanted, &global).await,
        Command::Completions(_) | Command::Man | Command::Schema | Command::New(_) | Command::Models(_) => {
            Ok(End::Finished)
        }
    }
}
