//! Encodes generated conversations with hostile names, ids, media, schemas and numbers for each
//! family of providers, and validates the requests independently of the wires.
//!
//! `cargo run --release -p agent-checks -- hostile --histories 10000`

mod families;
mod history;
mod rules;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::BTreeMap;

use agent::{
    ErrorKind, ModelRequest,
    core::BoxError,
    testing::{SeededRng, detached_run},
};

use self::families::{Family, families};

/// Encodes generated conversations for each family of providers, and checks that the requests obey
/// the provider's documented rules.
///
/// A generated conversation has names, call ids, texts, arguments, images and schemas of tools that
/// some provider rejects. Each wire either repairs the request or refuses to encode it with advice.
/// Exits with 1 if a request breaks a rule.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of conversations.
    #[arg(long, default_value_t = 500)]
    histories: u64,
    /// Seed of the first conversation.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the first request that breaks each rule.
    #[arg(long)]
    verbose: bool,
}

/// Counts of one family.
#[derive(Debug, Default)]
struct Counts {
    encoded: usize,
    refused: BTreeMap<String, usize>,
    /// Broken rules, with the number of requests and the first seed.
    broken: BTreeMap<String, (usize, u64)>,
}

/// Returns true if no request breaks a rule.
pub(crate) fn run(args: &Args) -> Result<bool, BoxError> {
    let mut fine = true;
    for family in families()? {
        let mut counts = Counts::default();
        for seed in args.seed..args.seed + args.histories {
            check(&family, seed, args.verbose, &mut counts);
        }
        println!("{:<20} {:>6} encoded", family.name, counts.encoded);
        counts.refused.iter().for_each(|(why, n)| println!("    not encoded: {n}: {why}"));
        counts.broken.iter().for_each(|(rule, (n, seed))| println!("    BROKEN: {n}: {rule} (seed {seed})"));
        fine &= counts.broken.is_empty();
    }
    Ok(fine)
}

/// Encodes the conversation of `seed` and validates the request.
fn check(family: &Family, seed: u64, verbose: bool, counts: &mut Counts) {
    let request = request(seed);
    let body = match family.codec.encode(&request) {
        Ok(encoded) => match serde_json::from_slice(encoded.body()) {
            Ok(body) => body,
            Err(error) => return broken(counts, format!("the body is not JSON: {error}"), seed),
        },
        Err(error) if error.kind() == ErrorKind::InvalidRequest => {
            *counts.refused.entry(error.message().chars().take(120).collect()).or_default() += 1;
            return;
        }
        Err(error) => return broken(counts, format!("not encoded: {error}"), seed),
    };
    counts.encoded += 1;
    let mut found = rules::common(family, &body);
    found.extend((family.rules)(&body));
    for rule in found {
        if verbose && !counts.broken.contains_key(&rule) {
            println!("{}: {rule}\n{body:#}", family.name);
        }
        broken(counts, rule, seed);
    }
}

fn broken(counts: &mut Counts, rule: String, seed: u64) {
    counts.broken.entry(rule).or_insert((0, seed)).0 += 1;
}

/// Returns the generated request of `seed`.
fn request(seed: u64) -> ModelRequest {
    let rng = SeededRng::new(seed);
    let history = history::generate(&mut rng.part("history"));
    let mut request = ModelRequest::new(detached_run(history).cx().clone());
    request.tools = tools::generate(&mut rng.part("tools")).into_iter().collect();
    request
}
