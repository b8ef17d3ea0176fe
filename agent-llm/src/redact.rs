//! Taking secrets out of texts that others will read.

use std::{borrow::Cow, fmt};

use http::HeaderMap;
use memchr::memmem;
use secrecy::{ExposeSecret, SecretString};

/// What stands in a secret's place.
pub(crate) const REDACTED: &str = "[redacted]";

/// A shorter secret (`none`, `ollama`, `x`) keeps nothing safe, and taking it out would mangle texts.
const SHORTEST: usize = 8;

/// How the keys of well-known services begin.
const PREFIXES: [&str; 12] =
    ["sk-", "sk_", "gsk_", "xai-", "AIza", "hf_", "ghp_", "github_pat_", "pplx-", "r8_", "AKIA", "Bearer "];

/// With its prefix, a key has at least so many characters.
const SHORTEST_KEY: usize = 20;

/// Headers that hold a key.
const KEY_HEADERS: [&str; 5] = ["authorization", "api-key", "x-api-key", "x-goog-api-key", "proxy-authorization"];

/// Takes known secrets, and what looks like the key of a well-known service, out of texts.
#[derive(Default)]
pub(crate) struct Redactor {
    secrets: Vec<SecretString>,
}

impl Redactor {
    /// Learns a secret.
    pub(crate) fn learn(&mut self, secret: &str) {
        let known = self.secrets.iter().any(|s| s.expose_secret() == secret);
        if secret.len() >= SHORTEST && !known {
            self.secrets.push(SecretString::from(secret));
        }
    }

    /// Learns the keys that `headers` hold.
    pub(crate) fn learn_headers(&mut self, headers: &HeaderMap) {
        for value in KEY_HEADERS.iter().filter_map(|name| headers.get(*name)?.to_str().ok()) {
            self.learn(value.split_once(' ').map_or(value, |(_scheme, key)| key));
        }
    }

    /// The text without secrets; borrowed if it holds none.
    pub(crate) fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.secrets {
            if text.contains(secret.expose_secret()) {
                text = Cow::Owned(text.replace(secret.expose_secret(), REDACTED));
            }
        }
        for prefix in PREFIXES {
            if let Cow::Owned(clean) = without_keys(&text, prefix) {
                text = Cow::Owned(clean);
            }
        }
        text
    }
}

/// The text without the keys that begin with `prefix`.
fn without_keys<'a>(text: &'a str, prefix: &str) -> Cow<'a, str> {
    let bytes = text.as_bytes();
    let (mut clean, mut copied) = (String::new(), 0);
    for start in memmem::find_iter(bytes, prefix) {
        let rest = &bytes[start + prefix.len()..];
        let length = prefix.len() + rest.iter().take_while(|b| is_key_byte(**b)).count();
        if start >= copied && length >= SHORTEST_KEY && begins_a_word(bytes, start) {
            clean.push_str(&text[copied..start]);
            clean.push_str(REDACTED);
            copied = start + length;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(&text[copied..]);
    Cow::Owned(clean)
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// True if no word goes on at `at`. In JSON text the letter of an escape, as in `\n`, is not of a word.
fn begins_a_word(bytes: &[u8], at: usize) -> bool {
    match bytes[..at] {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., last] => !is_key_byte(last),
        [] => true,
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("secrets", &self.secrets.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_secret_and_a_key_by_its_shape_are_taken_out() {
        let mut redactor = Redactor::default();
        redactor.learn("my-own-secret");
        let text = r#"{"a":"my-own-secret","b":"line\nsk-proj-0123456789abcdefghij","c":"Bearer abcdefghijklmnopq."}"#;
        let clean = redactor.redact(text);
        assert_eq!(clean, r#"{"a":"[redacted]","b":"line\n[redacted]","c":"[redacted]."}"#);
    }

    #[test]
    fn words_that_only_look_alike_are_left() {
        let text = "a task-list-of-many-different-things, sk-short, and a model named hf_tiny";
        assert!(matches!(Redactor::default().redact(text), Cow::Borrowed(_)));
    }

    #[test]
    fn a_secret_too_short_to_be_one_is_not_learnt() {
        let mut redactor = Redactor::default();
        redactor.learn("none");
        assert_eq!(redactor.redact("none of them"), "none of them");
    }
}
