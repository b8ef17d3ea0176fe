//! Redaction of secrets in texts that leave the process.

use std::{borrow::Cow, fmt, ops::Range};

use agent_core::{model::API_KEY_PREFIXES, tool::ServerTool};
use http::HeaderMap;
use memchr::memmem;
use secrecy::{ExposeSecret, SecretString};

use crate::wire::endpoint::percent_encoded;

/// Replacement for a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// Minimum length of a secret. Redacting a shorter one (`none`, `ollama`, `x`) protects nothing and
/// would mangle texts.
const SHORTEST: usize = 8;

/// Prefix of a bearer token in a header, and the minimum number of characters of a token.
const BEARER: (&str, usize) = ("Bearer ", 13);

/// Headers that hold a key.
const KEY_HEADERS: [&str; 2] = ["authorization", "proxy-authorization"];

/// Substrings that mark other headers as sensitive.
const KEY_WORDS: [&str; 6] = ["api-key", "apikey", "token", "secret", "password", "cookie"];

/// Redacts known secrets and anything that looks like a key of a well-known service.
#[derive(Default)]
pub(crate) struct Redactor {
    secrets: Vec<SecretString>,
}

impl Redactor {
    /// Registers a secret, along with its URL-encoded and JSON-escaped forms.
    pub(crate) fn learn(&mut self, secret: &str) {
        if secret.len() < SHORTEST {
            return;
        }
        for form in [secret.to_owned(), percent_encoded(secret), secret.replace('/', "\\/")] {
            if !self.secrets.iter().any(|known| known.expose_secret() == form) {
                self.secrets.push(SecretString::from(form));
            }
        }
    }

    /// Registers the keys in `headers`.
    pub(crate) fn learn_headers(&mut self, headers: &HeaderMap) {
        for (name, value) in headers {
            if let Some(value) = value.to_str().ok().filter(|_| is_key_header(name.as_str())) {
                self.learn(value.split_once(' ').map_or(value, |(_scheme, key)| key));
            }
        }
    }

    /// Registers the credentials of a tool's server.
    pub(crate) fn learn_tool(&mut self, tool: &ServerTool) {
        if let ServerTool::Mcp(server) = tool {
            server.authorization.iter().chain(server.headers.values()).for_each(|secret| self.learn(secret.expose()));
        }
    }

    /// Returns the text without secrets; borrowed if it holds none.
    pub(crate) fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let secrets = self.find(text.as_bytes());
        if secrets.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut clean, mut copied) = (String::new(), 0);
        for secret in secrets {
            clean.push_str(&text[copied..secret.start]);
            clean.push_str(REDACTED);
            copied = secret.end;
        }
        clean.push_str(&text[copied..]);
        Cow::Owned(clean)
    }

    /// Returns the byte ranges of all secrets, in order. Each range begins and ends on a character
    /// boundary.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let known = self.secrets.iter().map(|secret| secret.expose_secret().as_bytes());
        let known = known.flat_map(|secret| memmem::find_iter(text, secret).map(move |at| at..at + secret.len()));
        let shaped = API_KEY_PREFIXES.iter().chain([&BEARER]).flat_map(|(prefix, least)| keys(text, prefix, *least));
        let mut found: Vec<_> = known.chain(shaped).collect();
        found.sort_unstable_by_key(|range| range.start);
        found.dedup_by(|next, last| {
            let overlap = next.start < last.end;
            last.end = if overlap { last.end.max(next.end) } else { last.end };
            overlap
        });
        found
    }
}

/// Returns true for headers that hold a key, a token or another credential.
fn is_key_header(name: &str) -> bool {
    KEY_HEADERS.contains(&name) || KEY_WORDS.iter().any(|word| name.contains(word))
}

/// Finds keys that consist of `prefix` and at least `least` more characters.
fn keys<'a>(text: &'a [u8], prefix: &'a str, least: usize) -> impl Iterator<Item = Range<usize>> + 'a {
    memmem::find_iter(text, prefix).filter_map(move |start| {
        let rest = &text[start + prefix.len()..];
        let length = rest.iter().take_while(|b| is_key_byte(**b)).count();
        (length >= least && begins_a_word(text, start)).then_some(start..start + prefix.len() + length)
    })
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Returns true if a word can begin at `at`: no word continues there. The letter of a JSON escape,
/// such as the `n` of `\n`, does not count as part of a word.
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
    fn a_secret_is_found_however_an_address_or_json_spells_it() {
        let mut redactor = Redactor::default();
        redactor.learn("a/secret+of=mine");
        let text = "a/secret+of=mine a\\/secret+of=mine ?key=a%2Fsecret%2Bof%3Dmine&x=1";
        assert_eq!(redactor.redact(text), "[redacted] [redacted] ?key=[redacted]&x=1");
    }

    #[test]
    fn secrets_that_overlap_are_one() {
        let mut redactor = Redactor::default();
        ["sk-0123456789", "0123456789abcdefghijkl", "ghijklmnop"].iter().for_each(|secret| redactor.learn(secret));
        assert_eq!(redactor.redact("<sk-0123456789abcdefghijklmnop>"), "<[redacted]>");
    }

    #[test]
    fn headers_with_telling_names_hold_secrets() {
        let mut redactor = Redactor::default();
        let headers = ["authorization", "x-api-key", "x-goog-api-key", "x-amz-security-token", "x-my-secret"];
        let headers: HeaderMap = headers
            .iter()
            .map(|n| (n.parse().expect("a name"), format!("Key of-{n}").parse().expect("a value")))
            .collect();
        redactor.learn_headers(&headers);
        assert_eq!(redactor.redact("of-x-amz-security-token, of-x-my-secret"), "[redacted], [redacted]");
        let mut other = HeaderMap::new();
        other.insert("user-agent", "agent-llm/0.1".parse().expect("a value"));
        redactor.learn_headers(&other);
        assert_eq!(redactor.redact("agent-llm/0.1"), "agent-llm/0.1");
    }

    #[test]
    fn a_key_of_every_service_on_the_list_is_taken_out() {
        for (prefix, least) in API_KEY_PREFIXES {
            let key = format!("{prefix}{}", "a1".repeat(least.div_ceil(2)));
            assert_eq!(Redactor::default().redact(&format!("<{key}>")), "<[redacted]>", "{key}");
        }
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
