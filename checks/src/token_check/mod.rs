//! Compares token counts of requests with the usage that their providers reported, on recorded
//! exchanges with real servers.
//!
//! `cargo run --release -p agent-checks -- token-check exchanges.jsonl.gz`

mod counted;
mod report;

use std::{collections::BTreeMap, path::PathBuf};

use agent::{
    core::{BoxError, model::ApproximateCounter},
    llm::tokens::{CalibratedCounter, MediaCounter, MediaRule, Tiktoken},
};

use self::{counted::Counted, report::Report};
use crate::recordings::Exchange;

/// Compares token counts of requests with the usage that their providers reported.
///
/// For each exchange of the file whose response reports prompt tokens: the error of the counters,
/// by wire and by provider; prompts with images or documents separately. The calibrated counters
/// have learned from the earlier exchanges with the same model. Prompts of which the provider hides
/// a part (server-side tools, or stored state) are excluded, and counted. Exits with 1 if for a
/// wire with 20 exchanges or more a calibrated counter has a larger error than the underlying one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Exchanges: JSON lines, compressed with gzip if the name ends in `.gz`.
    file: PathBuf,
    /// Minimum tokens of a prompt: small prompts are dominated by the providers' overhead.
    #[arg(long, default_value_t = 200)]
    least: u64,
    /// Print the exchanges for which a counter's error exceeds this percentage.
    #[arg(long, value_name = "PERCENT")]
    show: Option<f64>,
}

/// Counters in report order: each uncalibrated and calibrated.
pub(crate) const COUNTERS: [&str; 4] =
    ["four characters", "four characters, put right", "tokenizer", "tokenizer, put right"];

/// Returns true if calibration helps.
pub(crate) fn run(args: &Args) -> Result<bool, BoxError> {
    let mut measured = Measured::new(args.least);
    for exchange in Exchange::read(&args.file)? {
        let exchange = exchange?;
        let Some((tokens, errors)) = measured.take(&exchange)? else { continue };
        let worst = errors.iter().flatten().map(|error| error.abs()).reduce(f64::max);
        if args.show.zip(worst).is_some_and(|(percent, worst)| worst * 100.0 > percent) {
            let Exchange { id, api, provider, .. } = &exchange;
            println!("{id} {api} {provider} {}: {tokens} tokens, {errors:.2?}", exchange.model());
        }
    }
    print!("{}", measured.report);
    Ok(measured.report.calibration_helps())
}

/// Relative error of each counter. `None` for a calibrated counter without training data.
type Errors = [Option<f64>; 4];

/// Measurements so far.
struct Measured {
    least: u64,
    report: Report,
    /// Calibrated counters by wire, provider and model.
    learned: BTreeMap<[String; 3], [CalibratedCounter; 2]>,
}

impl Measured {
    fn new(least: u64) -> Self {
        Self { least, report: Report::default(), learned: BTreeMap::new() }
    }

    /// Returns the tokens of the exchange's prompt and the errors of the counters; `None` if it
    /// cannot be compared.
    fn take(&mut self, exchange: &Exchange) -> Result<Option<(u64, Errors)>, BoxError> {
        let (request, usage, has_media) = match Counted::of(exchange)? {
            Counted::Comparable { request, usage, has_media } => (request, usage, has_media),
            Counted::LeftOut(why) => {
                self.report.left_out(&exchange.api, why);
                return Ok(None);
            }
            Counted::Nothing => return Ok(None),
        };
        if usage.prompt() < self.least {
            return Ok(None);
        }
        let rule = MediaRule::for_model(exchange.model());
        let characters = MediaCounter::new(ApproximateCounter, rule);
        let tokenizer = MediaCounter::new(Tiktoken::for_model(exchange.model()), rule);
        let key = [exchange.api.clone(), exchange.provider.clone(), exchange.model().to_owned()];
        let is_first = !self.learned.contains_key(&key);
        let calibrated = self.learned.entry(key);
        let calibrated = calibrated
            .or_insert_with(|| [CalibratedCounter::new(characters.clone()), CalibratedCounter::new(tokenizer.clone())]);
        let estimates = [request.tokens(&characters), request.tokens(&tokenizer)];
        let put_right = calibrated.each_ref().map(|counter| (!is_first).then(|| request.tokens(counter)));
        calibrated.iter().zip(estimates).for_each(|(counter, estimate)| counter.learn(estimate, &usage));
        let errors = [Some(estimates[0]), put_right[0], Some(estimates[1]), put_right[1]]
            .map(|count| count.map(|count| count as f64 / usage.prompt() as f64 - 1.0));
        self.report.add(&exchange.api, &exchange.provider, has_media, errors);
        Ok(Some((usage.prompt(), errors)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prompts from the tests of open-source projects, without responses, with the usage that their
    /// providers reported.
    const FIXTURE: &str = include_str!("fixture.jsonl");

    /// Expected mean error of each counter, by wire.
    const MEANS: [(&str, [f64; 4]); 6] = [
        ("openai-chat", [0.04, 0.06, 0.06, 0.05]),
        ("openai-responses", [0.16, 0.07, 0.07, 0.075]),
        ("anthropic-messages", [0.83, 0.06, 0.84, 0.06]),
        ("gemini-generate", [0.075, 0.06, 0.025, 0.035]),
        ("bedrock-converse", [0.60, 0.50, 0.55, 0.51]),
        ("cohere-chat", [0.96, 0.06, 0.96, 0.06]),
    ];

    /// Tolerance of the mean errors.
    const BAND: f64 = 0.02;

    #[test]
    fn counts_of_recorded_prompts_are_as_near_as_the_documentation_says() {
        let mut measured = Measured::new(0);
        for line in FIXTURE.lines() {
            measured.take(&serde_json::from_str(line).expect("an exchange")).expect("readable");
        }
        for (wire, means) in MEANS {
            let found = measured.report.means(wire);
            let is_near = |(found, mean): (Option<f64>, f64)| found.is_some_and(|found| (found - mean).abs() < BAND);
            assert!(found.into_iter().zip(means).all(is_near), "{wire}: {found:.3?}, not {means:?}");
        }
    }
}
