//! A program of clap's that does nothing: what `checks/cli_bench.py` holds the start of `agent` against.

use clap::Parser;

/// Says a word, if there is one.
#[derive(Debug, Parser)]
struct Bare {
    /// A word.
    #[arg(long)]
    word: Option<String>,
}

fn main() {
    if let Some(word) = Bare::parse().word {
        println!("{word}");
    }
}
