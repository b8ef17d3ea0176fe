//! Built-in detectors of [`Pii`](super::Pii).

mod address;
mod card;
mod digits;
mod email;
mod iban;
mod pattern;
mod phone;
mod secret;
mod url;

use std::sync::Arc;

use agent_core::Result;

use super::{PiiKind, config::Scope};
use crate::pii::Detector;

/// Returns the detectors of a kind.
pub(super) fn of(kind: &PiiKind) -> Result<Vec<Arc<dyn Detector>>> {
    Ok(match kind {
        PiiKind::Email => vec![Arc::new(email::Email)],
        PiiKind::CreditCard => vec![Arc::new(card::CreditCard)],
        PiiKind::Ip => vec![Arc::new(address::Ip)],
        PiiKind::Mac => vec![Arc::new(address::Mac)],
        PiiKind::Url => vec![Arc::new(url::Url)],
        PiiKind::Phone => vec![Arc::new(phone::Phone)],
        PiiKind::Iban => vec![Arc::new(iban::Iban { spaced: true }), Arc::new(iban::Iban { spaced: false })],
        PiiKind::Secret => vec![Arc::new(secret::Secret)],
        PiiKind::Pattern(pattern) => vec![Arc::new(pattern::Regular::new(pattern)?)],
    })
}

/// True for a letter of a script with spaces between words: in others, a whole sentence would be
/// one word.
fn is_letter(c: char) -> bool {
    c.is_alphabetic() && (c as u32) < 0x2E80
}

/// True if the byte at `at` satisfies `wanted`; false past the end.
fn is_at(text: &str, at: usize, wanted: impl Fn(u8) -> bool) -> bool {
    text.as_bytes().get(at).is_some_and(|byte| wanted(*byte))
}

/// As [`is_at`], for the byte before `at`.
fn is_before(text: &str, at: usize, wanted: impl Fn(u8) -> bool) -> bool {
    at > 0 && is_at(text, at - 1, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Passage;

    /// Returns the findings of a kind's detectors in a passage that spans the whole text.
    pub(super) fn found(kind: &PiiKind, text: &str) -> Vec<String> {
        let mut all = Vec::new();
        for detector in of(kind).expect("sound") {
            let mut start = 0;
            for part in text.split(|c| !detector.may_contain(c)) {
                let before = text[..start].chars().next_back();
                let after = text[start + part.len()..].chars().next();
                let ranges = detector.find(&Passage { text: part, before, after });
                all.extend(ranges.into_iter().map(|range| part[range].to_owned()));
                start += part.len() + after.map_or(0, char::len_utf8);
            }
        }
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn each_kind_is_found_and_what_looks_alike_is_not() {
        let table: &[(PiiKind, &[&str], &[&str])] = &[
            (
                PiiKind::Email,
                &["a@b.co", "jo.do+x@mail.example.com", "josé@exämple.org", "o'neil@a-b.example"],
                &["a@b", "@handle", "a@", "x@1.2", "a @ b.co", "@a.b"],
            ),
            (
                PiiKind::CreditCard,
                &["4111111111111111", "4111 1111 1111 1111", "3782-822463-10005", "5555.5555.5555.4444"],
                &["4111111111111112", "1234567812345670", "41111111111111110000", "4111 1111"],
            ),
            (
                PiiKind::Ip,
                &["192.168.0.1", "8.8.8.8", "2001:db8::1", "2001:db8:0:0:0:0:0:1", "fe80::1"],
                &["1.2.3", "256.1.1.1", "1.2.3.4.5", "12:34:56", "std::vec", "a::b", "::", "00:1a:2b:3c:4d:5e"],
            ),
            (
                PiiKind::Mac,
                &["00:1a:2b:3c:4d:5e", "00-1A-2B-3C-4D-5E", "001a.2b3c.4d5e"],
                &["00:1a:2b:3c:4d", "00:1a:2b:3c:4d:5e:6f", "00:1a-2b:3c-4d:5e", "2001:db8::1"],
            ),
            (
                PiiKind::Url,
                &["https://a.example/x?y=1#z", "ftp://h/", "www.example.com", "postgres://u:p@h/db"],
                &["a/b", "//", "http:", "://x", "www.", "a:b"],
            ),
            (
                PiiKind::Phone,
                &[
                    "+1 555 123 4567",
                    "(555) 123-4567",
                    "555-123-4567",
                    "+49 (0)30 123456",
                    "020 7946 0958",
                    "01 23 45 67 89",
                ],
                &["2024-01-15", "1 000 000", "192.168.100.200", "0.123456789", "12.05.2024", "+1", "123456789"],
            ),
            (
                PiiKind::Iban,
                &["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432", "gb82west12345698765432", "NO9386011117947"],
                &["DE89 3704 0044 0532 0130 01", "AB12", "HELLO WORLD AND MORE OF IT"],
            ),
            (
                PiiKind::Secret,
                &[
                    "sk-proj-abcdefghijklmnop1234",
                    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
                    "AKIAIOSFODNN7EXAMPLE",
                    "xoxb-1234567890-abcdefghij",
                    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
                ],
                &["sk-8", "task-force-of-the-year", "AKIA", "eyJ", "risk-assessment-for-everybody"],
            ),
        ];
        for (kind, yes, no) in table {
            for text in *yes {
                assert_eq!(found(kind, text), [*text], "{kind:?}");
                let within = format!("Look: {text}, they said.");
                assert_eq!(found(kind, &within), [*text], "{kind:?} in {within:?}");
            }
            for text in *no {
                assert_eq!(found(kind, text), Vec::<String>::new(), "{kind:?} in {text:?}");
            }
        }
    }

    #[test]
    fn every_one_of_several_is_found() {
        assert_eq!(found(&PiiKind::Email, "a@b.co,c@d.org;a@b.co"), ["a@b.co", "c@d.org"]);
        let cards = found(&PiiKind::CreditCard, "2024 4111 1111 1111 1111 5500005555555559");
        assert_eq!(cards, ["4111 1111 1111 1111", "5500005555555559"]);
        assert_eq!(found(&PiiKind::Ip, "10.0.0.1:80,10.0.0.2"), ["10.0.0.1", "10.0.0.2"]);
    }

    #[test]
    fn a_long_line_takes_time_in_proportion_to_its_length() {
        let whole = [
            PiiKind::Email,
            PiiKind::CreditCard,
            PiiKind::Ip,
            PiiKind::Mac,
            PiiKind::Url,
            PiiKind::Phone,
            PiiKind::Iban,
            PiiKind::Secret,
        ];
        let lines = ["1 ", "01 ", "+1 ", "1.", "a@", "a@a.", "1:", "a://", ").", "sk-.", "sk-", "eyJ.", "DE89 ", "(1)"];
        for line in lines {
            let text = format!("{}{}", line.repeat(20_000), ").".repeat(20_000));
            for kind in &whole {
                let started = std::time::Instant::now();
                for detector in of(kind).expect("sound") {
                    detector.find(&Passage { text: &text, before: None, after: None });
                }
                let took = started.elapsed();
                assert!(took.as_secs() < 15, "{kind:?} took {took:?} for a line of {line:?}");
            }
        }
    }

    #[test]
    fn a_name_in_a_sentence_without_spaces_does_not_take_the_sentence_with_it() {
        assert_eq!(found(&PiiKind::Email, "请联系john@example.com谢谢"), ["john@example.com"]);
    }
}
