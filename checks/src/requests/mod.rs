//! Writes the requests that the wires encode, for external validation: of recorded conversations,
//! and of a list of all parameters and all kinds of content.
//!
//! `cargo run --release -p agent-checks -- requests exchanges.jsonl.gz --out requests.jsonl`
//!
//! `checks/sdk_types.py` validates them against the types of the providers' own SDKs.

mod conversation;
mod listed;
mod targets;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufWriter, Write},
    path::PathBuf,
};

use agent::{
    ErrorKind, ModelRequest, Result,
    core::{BoxError, History},
    llm::{Codec, ParsedRequest},
    testing::detached_run,
};
use serde::Serialize;
use serde_json::Value;

use self::conversation::Conversation;
use crate::recordings::{Exchange, WIRES};

/// Writes the requests that the wires encode, as JSON lines.
///
/// For each recorded conversation: unchanged, followed up, edited, and continued on every other
/// wire. For each wire: all parameters of a call and all kinds of content. Each line has the wire
/// (`api`), the variant (`how`), the origin (`id`), the provider (`provider`), the request (`body`)
/// and, if there is one, the recorded request that it was derived from (`sent`). Requests that a
/// wire refuses to encode are counted, with the reason. Exits with 1 if a wire fails in any other
/// manner.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Exchanges: JSON lines, compressed with gzip if the name ends in `.gz`. Without a file, only
    /// the list is written.
    file: Option<PathBuf>,
    /// Output file. Default: standard output.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Returns true if every request was encoded, or refused with advice.
pub(crate) fn run(args: &Args) -> Result<bool, BoxError> {
    let out: Box<dyn Write> = match &args.out {
        Some(path) => Box::new(BufWriter::new(File::create(path)?)),
        None => Box::new(BufWriter::new(io::stdout().lock())),
    };
    let mut lines = Lines { out, counts: BTreeMap::new(), refused: BTreeMap::new(), failed: 0 };
    for (api, codec) in targets::all()? {
        for (id, request) in listed::requests() {
            let line = Line { api, how: "listed", id: &id, provider: codec.origin().provider(), sent: None };
            lines.write(&line, &*codec, &request)?;
        }
    }
    if let Some(file) = &args.file {
        let targets = targets::usual()?;
        for exchange in Exchange::read(file)? {
            write_conversation(&exchange?, &targets, &mut lines)?;
        }
    }
    lines.end()
}

fn write_conversation(exchange: &Exchange, targets: &[targets::Target], lines: &mut Lines) -> Result<(), BoxError> {
    let Some(wire) = WIRES.iter().find(|wire| wire.api() == exchange.api) else { return Ok(()) };
    let codec = targets::of(exchange, *wire)?;
    let Some(conversation) = Conversation::of(exchange, *wire, &*codec) else { return Ok(()) };
    let sent = exchange.request.json.as_ref();
    let Exchange { id, provider, .. } = exchange;
    let mut write = |how, request| lines.write(&Line { api: wire.api(), how, id, provider, sent }, &*codec, &request);
    write("as it came", conversation.as_it_came())?;
    let Some(followed) = conversation.followed_up() else { return Ok(()) };
    write("followed up", followed.clone())?;
    write("edited", conversation::edited(followed.clone()))?;
    let elsewhere = conversation::elsewhere(followed);
    for (api, codec) in targets.iter().filter(|(api, _)| *api != wire.api()) {
        let line = Line { api, how: "continued", id, provider: codec.origin().provider(), sent: None };
        lines.write(&line, &**codec, &elsewhere)?;
    }
    Ok(())
}

/// Output line of a request.
#[derive(Serialize)]
struct Line<'a> {
    api: &'a str,
    how: &'a str,
    id: &'a str,
    /// Provider of the model.
    provider: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<&'a Value>,
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    line: &'a Line<'a>,
    body: Value,
}

struct Lines {
    out: Box<dyn Write>,
    counts: BTreeMap<(String, String), usize>,
    refused: BTreeMap<(String, String), usize>,
    failed: usize,
}

impl Lines {
    fn write(&mut self, line: &Line<'_>, codec: &(impl Codec + ?Sized), request: &ParsedRequest) -> io::Result<()> {
        let of = |what: &str| (line.api.to_owned(), what.to_owned());
        match codec.encode(&ready(request.clone())) {
            Ok(request) => {
                let body = serde_json::from_slice(request.body())?;
                serde_json::to_writer(&mut self.out, &Written { line, body })?;
                writeln!(self.out)?;
                *self.counts.entry(of(line.how)).or_default() += 1;
            }
            Err(error) if error.kind() == ErrorKind::InvalidRequest => {
                *self.refused.entry(of(error.message())).or_default() += 1;
            }
            Err(error) => {
                self.failed += 1;
                eprintln!("{} {} {}: {error}", line.api, line.how, line.id);
            }
        }
        Ok(())
    }

    fn end(mut self) -> Result<bool, BoxError> {
        self.out.flush()?;
        for ((api, how), count) in &self.counts {
            eprintln!("{api} {how}: {count} written");
        }
        for ((api, why), count) in &self.refused {
            eprintln!("{api}: {count} refused before the call: {why}");
        }
        Ok(self.failed == 0)
    }
}

fn ready(request: ParsedRequest) -> ModelRequest {
    request.into_request(detached_run(History::default()).cx().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wire_writes_every_parameter_and_every_kind_of_content_or_says_what_it_takes() {
        let requests = listed::requests();
        assert!(requests.len() > 60, "{}", requests.len());
        for (api, codec) in targets::all().expect("codecs") {
            let mut written = 0;
            for (id, request) in &requests {
                match codec.encode(&ready(request.clone())) {
                    Ok(request) => {
                        let body: Value = serde_json::from_slice(request.body()).expect("JSON");
                        assert!(body.is_object(), "{api} {id}: {body}");
                        written += 1;
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{api} {id}: {error}"),
                }
            }
            assert!(written * 3 > requests.len() * 2, "{api} writes {written} of {}", requests.len());
        }
    }
}
