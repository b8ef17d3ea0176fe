//! Compares counts of requests with what their providers reported, on recorded exchanges with real servers.
//!
//! `cargo run --release -p agent-checks -- token-check exchanges.jsonl.gz`

mod report;

use std::{collections::BTreeMap, io, path::PathBuf};

use agent::{
    ModelRequest, Usage,
    core::{BoxError, History, Message, Part, model::ApproximateCounter},
    llm::tokens::{CalibratedCounter, Tiktoken},
    testing::detached_run,
};

use self::report::Report;
use crate::recordings::{Exchange, WIRES};

/// Compares counts of requests with what their providers reported.
///
/// Of each exchange of the file whose prompt is text and tools alone, and whose answer says what the prompt used: how far the
/// counters are from that, by provider. The calibrated counter has learned from the exchanges with the same model before it. Exits
/// with 1 if for some provider with 20 exchanges or more the calibrated counter is further off than the one inside it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The exchanges: JSON lines, compressed with gzip if the name ends in `.gz`.
    file: PathBuf,
    /// The least tokens of a prompt: what a small one costs is what providers put around it.
    #[arg(long, default_value_t = 1_000)]
    least: u64,
    /// Print the exchanges of which a counter is further off than this, in percent.
    #[arg(long, value_name = "PERCENT")]
    show: Option<f64>,
}

/// What counts a prompt, in the order of the report.
pub(crate) const COUNTERS: [&str; 3] = ["four characters", "tokenizer", "calibrated"];

/// True if calibration is worth it.
pub(crate) fn run(args: &Args) -> Result<bool, BoxError> {
    let (mut report, mut learned) = (Report::default(), BTreeMap::new());
    for exchange in Exchange::read(&args.file)? {
        let exchange = exchange?;
        let Some((request, usage)) = counted(&exchange)?.filter(|(_, usage)| usage.prompt() >= args.least) else {
            continue;
        };
        let tokenizer = Tiktoken::for_model(exchange.model());
        let key = (exchange.provider.clone(), exchange.model().to_owned());
        let is_first = !learned.contains_key(&key);
        let calibrated = learned.entry(key).or_insert_with(|| CalibratedCounter::new(tokenizer));
        let estimate = request.tokens(&tokenizer);
        // A counter that learned nothing is not calibrated.
        let third = (!is_first).then(|| request.tokens(calibrated));
        calibrated.learn(estimate, &usage);
        let errors = [Some(request.tokens(&ApproximateCounter)), Some(estimate), third]
            .map(|count| count.map(|count| count as f64 / usage.prompt() as f64 - 1.0));
        if let (Some(percent), Some(worst)) = (args.show, errors.iter().flatten().map(|e| e.abs()).reduce(f64::max))
            && worst * 100.0 > percent
        {
            println!(
                "{} {} {}: {} tokens, {errors:.2?}",
                exchange.id,
                exchange.provider,
                exchange.model(),
                usage.prompt()
            );
        }
        report.add(&exchange.provider, errors);
    }
    print!("{report}");
    Ok(report.calibration_helps())
}

/// The request and what its prompt used, if both can be compared: a prompt of texts and tools that its provider counted, without
/// what the provider kept from before or found elsewhere.
fn counted(exchange: &Exchange) -> io::Result<Option<(ModelRequest, Usage)>> {
    let Some(wire) = WIRES.iter().find(|wire| wire.api() == exchange.api) else { return Ok(None) };
    let Some(sent) = exchange.request.json.as_ref().filter(|_| exchange.status().is_success()) else { return Ok(None) };
    let codec = wire.codec(exchange).map_err(io::Error::other)?;
    let parsed = codec.decode_request(sent.to_string().as_bytes());
    let response = crate::recordings::response(&*codec, exchange);
    let (Ok(parsed), Ok(response)) = (parsed, response) else { return Ok(None) };
    let is_text = parsed.messages.iter().all(is_text)
        && response.message.blocks().iter().all(|block| !matches!(block, agent::core::Block::Other(_)));
    let is_known =
        ["previous_response_id", "conversation", "cachedContent", "prompt"].iter().all(|key| sent[key].is_null());
    if response.usage.prompt() == 0 || !is_text || !is_known {
        return Ok(None);
    }
    let request = parsed.into_request(detached_run(History::default()).cx().clone());
    Ok(Some((request, response.usage)))
}

fn is_text(message: &Message) -> bool {
    let are_text = |parts: &[Part]| parts.iter().all(|part| matches!(part, Part::Text(_)));
    match message {
        Message::System(m) => are_text(m.parts()),
        Message::User(m) => are_text(m.parts()),
        Message::Tool(m) => are_text(m.parts()),
        Message::Assistant(m) => m.blocks().iter().all(|block| {
            !matches!(
                block,
                agent::core::Block::Image(_) | agent::core::Block::Document(_) | agent::core::Block::Other(_)
            )
        }),
    }
}
