//! Asks an agent about a directory, as `agent run` does: the guide of
//! `examples/agents/repository-guide.yaml`, with the librarian as a sub-agent, streamed to the
//! terminal and recorded in a journal. Then shows the events, as `agent inspect` does.
//!
//! `cargo run` asks about this repository. See `--help`.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use agent_examples::models::ModelArgs;
use clap::Parser;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/agents/repository-guide.yaml");
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Asks an agent about a directory.
#[derive(Parser, Debug)]
#[command(version)]
struct Args {
    /// The question.
    #[arg(
        default_value = "What does the documentation say about the order of middleware hooks, and which code runs them?"
    )]
    question: String,
    /// The directory that the question is about. Default: this repository.
    #[arg(long, default_value = REPOSITORY, hide_default_value = true)]
    dir: PathBuf,
    /// Journal file.
    #[arg(long, default_value = "ask.db")]
    journal: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
}

impl Args {
    /// Arguments of `agent run`. Both agents only read; the librarian sees only the `docs` folder,
    /// if there is one.
    fn run(&self, model: Option<String>, session: &str) -> Vec<OsString> {
        let dir = std::path::absolute(&self.dir).unwrap_or_else(|_| self.dir.clone());
        let docs = dir.join("docs");
        let docs = if docs.is_dir() { &docs } else { &dir };
        let set = |name: &str, path: &Path| OsString::from(format!("{name}={}", path.display()));
        let mut words: Vec<OsString> = ["agent", "run", "--file", GUIDE, "--session", session].map(Into::into).into();
        words.extend(["--store".into(), self.journal.clone().into()]);
        words.extend(["--set".into(), set("folder", &dir), "--set".into(), set("docs", docs)]);
        if let Some(model) = model {
            words.extend(["--model".into(), model.into()]);
        }
        words.extend(["--".into(), self.question.clone().into()]);
        words
    }

    /// Arguments of `agent inspect`.
    fn inspect(&self, session: &str) -> Vec<OsString> {
        let words = ["agent", "inspect", session, "--store"].map(OsString::from);
        words.into_iter().chain([self.journal.clone().into()]).collect()
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime begins");
    let model = match runtime.block_on(args.model.name()) {
        Ok(model) => model,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    println!("? {}\n", args.question);
    let session = agent::core::run::new_id();
    let ended = agent_cli::run(args.run(model, &session));
    if ended != ExitCode::SUCCESS {
        return ended;
    }
    println!();
    let ended = agent_cli::run(args.inspect(&session));
    println!("\nThe journal is kept in {}.", args.journal.display());
    ended
}
