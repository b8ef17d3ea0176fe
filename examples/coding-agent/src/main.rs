//! Repairs a repository in a sandbox: the agent works on a copy until the tests pass, and the program
//! prints the change as a patch.
//!
//! `cargo run -p coding-agent`

mod coder;
mod repository;
mod script;
#[cfg(test)]
mod tests;
mod verify;

use std::path::PathBuf;

use agent::{
    llm::model,
    prelude::*,
    tools::sandbox::{LocalSandbox, LocalSandboxBuilder, Sandbox},
};
use clap::Parser;

use crate::{repository::Repository, verify::TestCommand};

/// Repairs a repository in a sandbox until its tests pass.
#[derive(Parser, Debug)]
struct Args {
    /// The task.
    #[arg(default_value = "The tests fail. Find the fault in the code and repair it. Do not change the tests.")]
    task: String,
    /// Git repository, of which the newest commit is copied; it stays unchanged. Default: a small
    /// one with a failing test.
    #[arg(long, value_name = "DIR")]
    repository: Option<PathBuf>,
    /// Command that succeeds if the repository is in order.
    #[arg(long = "test", value_name = "COMMAND", default_value = repository::TEST)]
    test: String,
    /// Folder outside of the repository that commands may read, such as a toolchain.
    #[arg(long, value_name = "DIR")]
    readable: Vec<PathBuf>,
    /// Model, such as `openai:gpt-5` or `ollama:qwen3`. Default: a script that repairs the small
    /// repository.
    #[arg(long, env = "MODEL")]
    model: Option<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let copy = match &args.repository {
        Some(path) => Repository::copy_of(path)?,
        None => Repository::sample()?,
    };
    let sandbox = LocalSandbox::builder(copy.path());
    let sandbox = args.readable.into_iter().fold(sandbox, LocalSandboxBuilder::readable).build()?;
    eprintln!("{}", sandbox.guarantees());
    let test = TestCommand::new(sandbox.clone(), args.test);

    let coder = if let Some(name) = &args.model {
        coder::build(model(name).build()?, &sandbox, &test)?
    } else if args.repository.is_some() {
        return Err(Error::config("the script repairs only its own repository: name a model (--model, or MODEL)"));
    } else {
        eprintln!("No model is connected (--model, or MODEL): a script repairs the sample.");
        coder::build(script::repairing(), &sandbox, &test)?
    };
    if test.run().await?.is_passed {
        return Err(Error::config("the tests pass already: there is nothing to repair"));
    }
    let end = coder.run(args.task).await?.into_result()?.complete()?;
    eprintln!("{}\n{} model calls, {:?}", end.answer, end.usage.calls, end.tool_calls);
    println!("{}", repository::patch(&sandbox).await?);
    Ok(())
}
