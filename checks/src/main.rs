//! Checks and measurements of the framework's claims: one subcommand per claim. Each exits with 1
//! if its claim does not hold.

mod budget_storm;
mod cancel_storm;
mod code_bench;
mod compaction_check;
mod corpus_check;
mod hostile;
mod http_bench;
mod journal_bench;
mod kill_test;
mod mcp_bench;
mod mcp_servers;
mod middleware_bench;
mod recordings;
mod requests;
mod server_check;
mod simulate;
mod stack_lint;
mod token_check;
mod tool_check;
mod turn_bench;
mod vector_bench;
mod worker_bench;
mod worker_kill;
mod worker_week;

use std::process::ExitCode;

use agent::core::BoxError;
use clap::Parser;

/// Checks and measures the claims of the framework.
#[derive(Debug, Parser)]
#[command(name = "agent-checks")]
enum Program {
    BudgetStorm(budget_storm::Args),
    CancelStorm(cancel_storm::Args),
    CodeBench(code_bench::Args),
    CompactionCheck(compaction_check::Args),
    CorpusCheck(corpus_check::Args),
    Hostile(hostile::Args),
    HttpBench(http_bench::Args),
    JournalBench(journal_bench::Args),
    #[command(name = kill_test::NAME)]
    KillTest(kill_test::Args),
    McpBench(mcp_bench::Args),
    McpServers(mcp_servers::Args),
    MiddlewareBench(middleware_bench::Args),
    Requests(requests::Args),
    #[command(name = server_check::NAME)]
    ServerCheck(server_check::Args),
    Simulate(simulate::Args),
    StackLint(stack_lint::Args),
    TokenCheck(token_check::Args),
    ToolCheck(tool_check::Args),
    TurnBench(turn_bench::Args),
    VectorBench(vector_bench::Args),
    WorkerBench(worker_bench::Args),
    #[command(name = worker_kill::NAME)]
    WorkerKill(worker_kill::Args),
    #[command(name = worker_week::NAME)]
    WorkerWeek(worker_week::Args),
}

impl Program {
    /// Returns true if the claim holds.
    fn run(&self) -> Result<bool, BoxError> {
        Ok(match self {
            Self::BudgetStorm(args) => block_on(budget_storm::run(args))??,
            Self::CancelStorm(args) => block_on(cancel_storm::run(args))??,
            Self::CodeBench(args) => block_on(code_bench::run(args))??,
            Self::CompactionCheck(args) => block_on(compaction_check::run(args))??,
            Self::CorpusCheck(args) => corpus_check::run(args)?,
            Self::Hostile(args) => hostile::run(args)?,
            Self::HttpBench(args) => block_on(http_bench::run(args))??,
            Self::JournalBench(args) => block_on(journal_bench::run(args))??,
            Self::KillTest(args) => kill_test::run(args)?,
            Self::McpBench(args) => block_on(mcp_bench::run(args))??,
            Self::McpServers(args) => block_on(mcp_servers::run(args))??,
            Self::MiddlewareBench(args) => middleware_bench::run(args)?,
            Self::Requests(args) => requests::run(args)?,
            Self::ServerCheck(args) => block_on(server_check::run(args))??,
            Self::Simulate(args) => simulate::run(args),
            Self::StackLint(args) => stack_lint::run(args),
            Self::TokenCheck(args) => token_check::run(args)?,
            Self::ToolCheck(args) => tool_check::run(args)?,
            Self::TurnBench(args) => block_on(turn_bench::run(args))??,
            Self::VectorBench(args) => block_on(vector_bench::run(args))??,
            Self::WorkerBench(args) => block_on(worker_bench::run(args))??,
            Self::WorkerKill(args) => block_on(worker_kill::run(args))??,
            Self::WorkerWeek(args) => block_on(worker_week::run(args))??,
        })
    }
}

/// Runs on four threads, even on fewer processors, so that race conditions can occur everywhere.
fn block_on<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?;
    Ok(runtime.block_on(work))
}

fn main() -> ExitCode {
    match Program::parse().run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("{e}");
            let sources = std::iter::successors(e.source(), |e| e.source());
            sources.for_each(|source| eprintln!("  because of: {source}"));
            ExitCode::FAILURE
        }
    }
}
