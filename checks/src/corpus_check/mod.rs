//! Checks the wire codecs against recorded exchanges with real servers: that nothing is dropped,
//! that streams and whole bodies yield the same messages, that messages are sent back unchanged,
//! and that requests survive decoding and encoding.
//!
//! `cargo run --release -p agent-checks -- corpus-check exchanges.jsonl.gz`
//!
//! Prints the number of exchanges that passed each check, by wire and source. Fails if fewer than
//! 99.9 % of a wire's exchanges pass one. [`checks`] documents each check; a wire is added in
//! [`crate::recordings`].

mod checks;
mod report;
mod show;
#[cfg(test)]
mod tests;
mod vectors;

use std::{
    fs::File,
    io::{self, BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
};

use agent::core::BoxError;

use self::{
    checks::{CHECKS, Outcome, Subject},
    report::Report,
};
use crate::recordings::{Exchange, WIRES, Wire};

/// Checks the wire codecs against recorded exchanges with real servers.
///
/// Four checks of each exchange: `decode` (nothing of a response is dropped or misread, errors are
/// typed, nothing panics), `fold` (a stream yields the same message as the whole response),
/// `replay` (the message is sent back to its provider unchanged) and `request` (a request that is
/// decoded and encoded again keeps every field). Embedding exchanges are checked by `decode` and
/// `request`. Checks that a recording does not allow are counted separately, with the reason. Exits
/// with 1 if fewer than 99.9 % of a wire's exchanges pass one of the checks.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Exchanges: JSON lines, compressed with gzip if the name ends in `.gz`.
    file: PathBuf,
    /// Check only this wire, such as `openai-chat`.
    #[arg(long)]
    wire: Option<String>,
    /// Print the exchange with this id, its decoded form, and the differences as JSON pointers;
    /// check no other.
    #[arg(long, value_name = "ID")]
    show: Option<String>,
    /// Write the failures to this file: JSON lines with `id`, `check` and `reason`.
    #[arg(long, value_name = "OUT")]
    failures: Option<PathBuf>,
}

/// Returns true if enough exchanges pass.
pub(crate) fn run(args: &Args) -> Result<bool, BoxError> {
    if let Some(name) = args.wire.as_deref().filter(|name| *name != vectors::API && wire_of(name).is_none()) {
        let known: Vec<_> = WIRES.iter().map(|wire| wire.api()).chain([vectors::API]).collect();
        return Err(format!("there is no wire '{name}': the wires are {}", known.join(", ")).into());
    }
    std::panic::set_hook(Box::new(|_| {})); // panics are counted, not printed
    let result = match &args.show {
        Some(id) => show_one(&args.file, id),
        None => check_all(args),
    };
    result.map_err(|error| format!("{}: {error}", args.file.display()).into())
}

fn wire_of(api: &str) -> Option<&'static dyn Wire> {
    WIRES.iter().copied().find(|wire| wire.api() == api)
}

fn show_one(file: &Path, id: &str) -> io::Result<bool> {
    for exchange in Exchange::read(file)? {
        let exchange = exchange?;
        if exchange.id != id {
            continue;
        }
        match wire_of(&exchange.api).map(|wire| Subject::new(wire, &exchange)) {
            Some(Ok(subject)) => show::show(&subject),
            Some(Err(error)) => eprintln!("there is no codec for it: {error}"),
            None if exchange.api == vectors::API => {
                vectors::outcomes(&exchange).iter().for_each(|(check, outcome)| show::outcome(*check, outcome));
            }
            None => eprintln!("there is no wire '{}'", exchange.api),
        }
        return Ok(true);
    }
    eprintln!("no exchange has the id '{id}'");
    Ok(false)
}

fn check_all(args: &Args) -> io::Result<bool> {
    let mut failures: Box<dyn Write> = match &args.failures {
        Some(path) => Box::new(BufWriter::new(File::create(path)?)),
        None => Box::new(io::sink()),
    };
    let (mut report, mut progress) = (Report::default(), Progress::default());
    for exchange in Exchange::read(&args.file)? {
        let exchange = exchange?;
        progress.tick();
        if args.wire.as_ref().is_some_and(|wire| *wire != exchange.api) {
            continue;
        }
        match wire_of(&exchange.api) {
            Some(wire) => report.count(&exchange, outcomes(wire, &exchange), &mut failures)?,
            None if exchange.api == vectors::API => {
                report.count(&exchange, vectors::outcomes(&exchange), &mut failures)?;
            }
            None => report.unknown(&exchange),
        }
    }
    failures.flush()?;
    progress.end();
    print!("{report}");
    let insufficient = report.insufficient();
    for (wire, check) in &insufficient {
        eprintln!("too few exchanges of {wire} pass '{}'", check.as_str());
    }
    Ok(insufficient.is_empty())
}

/// Returns the outcome of each check of an exchange.
fn outcomes(wire: &dyn Wire, exchange: &Exchange) -> Vec<(checks::Check, Outcome)> {
    match Subject::new(wire, exchange) {
        Ok(subject) => CHECKS.iter().map(|check| (*check, subject.check(*check))).collect(),
        Err(error) => {
            let why = Outcome::Failed(vec![format!("there is no codec for it: {error}")]);
            CHECKS.iter().map(|check| (*check, why.clone())).collect()
        }
    }
}

/// Progress counter on standard error, if that is a terminal.
#[derive(Default)]
struct Progress(usize);

impl Progress {
    fn tick(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(100) && io::stderr().is_terminal() {
            eprint!("\r{} exchanges", self.0);
        }
    }

    fn end(&self) {
        if io::stderr().is_terminal() {
            eprint!("\r");
        }
        eprintln!("{} exchanges read", self.0);
    }
}
