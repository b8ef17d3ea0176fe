//! A program of clap's that does nothing: what `checks/cli_bench.py` holds the start of `agent` against.

use clap::Parser;

/// Does nothing.
#[derive(Debug, Parser)]
struct Bare {
    /// A word.
    #[arg(long)]
    word: Option<String>,
}

fn main() {
    drop(Bare::parse());
}
