//! Detailed output of one exchange, for debugging.

use serde_json::Value;

use super::checks::{self, CHECKS, Check, Outcome, Subject};
use crate::recordings::Recording;

/// Prints the exchange, its decoded form, and the faults.
pub(crate) fn show(subject: &Subject<'_>) {
    let exchange = subject.exchange;
    println!("=== {} ({}, {}) ===", exchange.id, exchange.api, exchange.provider);
    println!("--- asked {} ---", exchange.request.path);
    println!("{}", exchange.request.json.as_ref().map_or_else(|| "(nothing that is JSON)".to_owned(), pretty));
    println!("--- answered {} ---", exchange.status());
    match serde_json::from_str(&exchange.response.body) {
        Ok(json) => println!("{}", pretty(&json)),
        Err(_) => println!("{}", exchange.response.body),
    }
    if let Recording::Streamed(whole) = &subject.recording {
        println!("--- as it would have come whole ---\n{}", pretty(whole));
    }
    match subject.response() {
        Ok(response) => {
            println!("--- response ---\n{}", pretty(&checks::to_json(&response)));
            match checks::sent_again(subject, response.message) {
                Ok(request) => println!("--- the request that goes on after it ---\n{}", pretty(&request)),
                Err(why) => println!("--- no request goes on after it: {why} ---"),
            }
        }
        Err(error) => println!("--- error ---\n{error:?}"),
    }
    for check in CHECKS {
        outcome(check, &subject.check(check));
    }
}

/// Prints the outcome of a check.
pub(crate) fn outcome(check: Check, outcome: &Outcome) {
    match outcome {
        Outcome::Passed => println!("{}: passed", check.as_str()),
        Outcome::NotMeant => println!("{}: is not about such an exchange", check.as_str()),
        Outcome::NotCheckable(why) => println!("{}: not checkable: {why}", check.as_str()),
        Outcome::Failed(reasons) => {
            println!("{}: FAILED", check.as_str());
            reasons.iter().for_each(|reason| println!("    {reason}"));
        }
    }
}

fn pretty(json: &Value) -> String {
    format!("{json:#}")
}
