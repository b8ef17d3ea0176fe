//! The documents: lines of JSON, or generated reviews.

use std::{fs, path::Path};

use agent::prelude::*;
use serde::Deserialize;

/// Number of generated reviews.
const GENERATED: usize = 10_000;

/// A text of a customer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Document {
    pub(crate) id: String,
    pub(crate) text: String,
}

/// Reads a file, or generates reviews if no file is given.
pub(crate) fn read_or_generate(input: Option<&Path>) -> Result<Vec<Document>> {
    let Some(path) = input else { return Ok((0..GENERATED).map(generated).collect()) };
    let text = fs::read_to_string(path).map_err(|e| {
        let message = format!("{} cannot be read: name a file of JSON lines with --input", path.display());
        Error::config(message).with_source(e)
    })?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let parsed = lines.map(|(number, line)| {
        serde_json::from_str(line).map_err(|e| {
            let message = format!("{}:{number}: {e}", path.display());
            Error::config(message + r#"; write {"id": "..", "text": ".."} in each line"#)
        })
    });
    parsed.collect()
}

const SENTENCES: [&str; 8] = [
    "The parcel came four days late.",
    "The parcel came the next morning, which is great.",
    "The lid was broken when I opened the box.",
    "The teapot pours well and looks great.",
    "It is too expensive for what it is.",
    "A fair price, I love it.",
    "Support never answered my mail.",
    "Support was friendly and solved it at once.",
];
const CONTEXTS: [&str; 5] = [
    "It was a present for my mother.",
    "I had ordered before.",
    "We use it at the office.",
    "I read the reviews first.",
    "It is for our tea room.",
];

/// Generates a review.
fn generated(number: usize) -> Document {
    let (sentence, context) = (SENTENCES[number * 7 / 3 % SENTENCES.len()], CONTEXTS[number % CONTEXTS.len()]);
    Document { id: format!("review-{number}"), text: format!("{context} {sentence}") }
}
