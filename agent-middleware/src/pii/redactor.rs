//! Replacement of findings.

use std::{borrow::Cow, fmt, sync::Arc};

use agent_core::{Error, ErrorKind, Result, Retry};
use sha2::{Digest, Sha256};

use super::PiiStrategy;
use crate::{
    pii::Detector,
    scan::{Finding, Rewrite, Scanner},
};

/// Replaces findings by the strategy of their rule.
#[derive(Clone)]
pub(super) struct Redactor {
    pub(super) rules: Arc<Rules>,
    /// True if blocked data is an error; otherwise it is marked.
    pub(super) fails: bool,
    /// True if the text and reasoning of models are scanned.
    pub(super) words: bool,
    /// Redactor of tool call arguments, if they are scanned.
    pub(super) arguments: Option<Arc<Self>>,
}

/// The detectors with their strategies.
pub(super) struct Rules {
    pub(super) scanner: Scanner,
    /// Names and strategies by the index of the detector.
    of: Vec<(String, PiiStrategy)>,
    key: Vec<u8>,
}

impl Rules {
    pub(super) fn new(rules: Vec<(Arc<dyn Detector>, PiiStrategy)>, key: Vec<u8>) -> Self {
        let of = rules.iter().map(|(detector, strategy)| (detector.name().to_uppercase(), *strategy)).collect();
        let detectors = rules.into_iter().map(|(detector, _)| detector).collect();
        Self { scanner: Scanner::new(detectors), of, key }
    }

    /// Returns the name of blocked data that is marked in `text`.
    pub(super) fn marked<'a>(&'a self, text: &str) -> Option<&'a str> {
        let blocked = self.of.iter().filter(|(_, strategy)| *strategy == PiiStrategy::Block);
        blocked.map(|(name, _)| name.as_str()).find(|name| text.contains(&*mark(name)))
    }
}

/// Marks blocked data in the arguments of a call, which must not run.
fn mark(name: &str) -> String {
    format!("[BLOCKED_{name}]")
}

impl Rewrite for Redactor {
    fn scanner(&self) -> &Scanner {
        &self.rules.scanner
    }

    fn replace(&self, finding: &Finding, found: &str) -> Result<Cow<'static, str>> {
        let rules = finding.by.iter().filter_map(|by| self.rules.of.get(*by));
        let strategy = rules.clone().map(|(_, strategy)| *strategy).max().unwrap_or_default();
        let name = rules.clone().find(|(_, of)| *of == strategy).map_or("PII", |(name, _)| name.as_str());
        Ok(match strategy {
            PiiStrategy::Mask => masked(found).into(),
            PiiStrategy::Hash => format!("[{name}:{}]", keyed_hash(&self.rules.key, found)).into(),
            PiiStrategy::Redact => format!("[{name}]").into(),
            PiiStrategy::Block if self.fails => return Err(blocked(name)),
            PiiStrategy::Block => mark(name).into(),
        })
    }

    fn rewrites_words(&self) -> bool {
        self.words
    }

    fn of_arguments(&self) -> Option<&dyn Rewrite> {
        self.arguments.as_deref().map(|redactor| redactor as _)
    }
}

/// Returns the error of a call with blocked data.
fn blocked(name: &str) -> Error {
    let message = format!("this was withheld: it holds what must not go further ({})", name.to_lowercase());
    Error::new(ErrorKind::ContentFiltered, message).with_retry(Retry::Permanent)
}

/// Replaces letters and digits by stars, except for the last quarter of them, at most four.
fn masked(found: &str) -> String {
    let count = found.chars().filter(|c| c.is_alphanumeric()).count();
    let hidden = count - (count / 4).min(4);
    let mut seen = 0;
    let mask = |c: char| {
        seen += usize::from(c.is_alphanumeric());
        if c.is_alphanumeric() && seen <= hidden { '*' } else { c }
    };
    found.chars().map(mask).collect()
}

/// Returns the first eight bytes of the HMAC-SHA256.
fn keyed_hash(key: &[u8], text: &str) -> String {
    const BLOCK: usize = 64;
    let mut padded = [0; BLOCK];
    match key.len() > BLOCK {
        true => padded[..32].copy_from_slice(&Sha256::digest(key)),
        false => padded[..key.len()].copy_from_slice(key),
    }
    let round = |with: u8, text: &[u8]| {
        let key = padded.map(|byte| byte ^ with);
        Sha256::new().chain_update(key).chain_update(text).finalize()
    };
    let hash = round(0x5c, &round(0x36, text.as_bytes()));
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.of).finish() // omits the key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_hmac_of_the_standard() {
        // RFC 4231, cases 1, 2 and 6.
        assert_eq!(keyed_hash(&[0x0b; 20], "Hi There"), "b0344c61d8db3853");
        assert_eq!(keyed_hash(b"Jefe", "what do ya want for nothing?"), "5bdcc146bf60754e");
        let long = "Test Using Larger Than Block-Size Key - Hash Key First";
        assert_eq!(keyed_hash(&[0xaa; 131], long), "60e431591ee0b67f");
    }

    #[test]
    fn a_mask_leaves_the_last_quarter_and_the_form() {
        assert_eq!(masked("4111 1111 1111 1111"), "**** **** **** 1111");
        assert_eq!(masked("jo@example.com"), "**@*******.com");
        assert_eq!(masked("1.2"), "*.*");
    }
}
