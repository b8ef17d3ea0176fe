//! Finds and replaces passages of texts, including streamed texts.
//!
//! A text is split into [`Passage`]s: the longest stretches of characters that may be in a finding
//! of a [`Detector`]. A finding never crosses the border of a passage, and a detector sees only the
//! passage and its two neighbouring characters. A text may therefore be cut wherever no passage is
//! cut, and the pieces have the same findings as the whole: this is why [`LookBack`] cannot leak a
//! finding that is split across chunks.

mod chunks;
mod content;
mod heard;
mod look_back;

use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

use agent_core::{Result, exact};

pub(crate) use self::{
    chunks::rewriter,
    content::{assistant, json, message, output},
    heard::Heard,
};

/// A stretch of text that a [`Detector`] searches.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Passage<'a> {
    /// The longest stretch of characters that [may be in](Detector::may_contain) a finding.
    pub text: &'a str,
    /// The character before it; `None` at the beginning of the text.
    pub before: Option<char>,
    /// The character after it; `None` at the end of the text.
    pub after: Option<char>,
}

/// Finds data in texts: mail addresses, card numbers, names of patients.
///
/// ```
/// use agent_middleware::{Pii, pii::{Detector, Passage, PiiStrategy}};
/// use std::ops::Range;
///
/// /// Numbers of patients: `P` and six digits.
/// struct Patient;
///
/// impl Detector for Patient {
///     fn name(&self) -> &str {
///         "patient"
///     }
///
///     fn may_contain(&self, c: char) -> bool {
///         c == 'P' || c.is_ascii_digit()
///     }
///
///     fn find(&self, passage: &Passage<'_>) -> Vec<Range<usize>> {
///         let at = |(at, _): (usize, &str)| (passage.text.len() >= at + 7).then_some(at..at + 7);
///         passage.text.match_indices('P').filter_map(at).collect()
///     }
/// }
///
/// let pii = Pii::builder().detector(Patient, PiiStrategy::Redact).build()?;
/// assert_eq!(pii.redact("See P123456.")?, "See [PATIENT].");
/// # Ok::<(), agent_core::Error>(())
/// ```
pub trait Detector: Send + Sync + 'static {
    /// Returns the name of the findings: one lower-case word.
    fn name(&self) -> &str;

    /// True if a finding may contain the character. A streamed text is held back from the start of
    /// its last stretch of such characters, so fewer characters mean less delay.
    fn may_contain(&self, c: char) -> bool;

    /// Returns the findings in a passage, as byte ranges in its text.
    fn find(&self, passage: &Passage<'_>) -> Vec<Range<usize>>;
}

/// Several detectors over one text.
pub(crate) struct Scanner(Vec<Arc<dyn Detector>>);

/// A finding; overlapping findings are merged.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) range: Range<usize>,
    /// Indices of the detectors that found it. The first one's match starts first, and is the
    /// longest of those.
    pub(crate) by: Vec<usize>,
}

/// Replaces findings.
pub(crate) trait Rewrite: Send + Sync + 'static {
    fn scanner(&self) -> &Scanner;

    /// Returns the replacement of `found`.
    fn replace(&self, finding: &Finding, found: &str) -> Result<Cow<'static, str>>;

    /// True if a model's text and reasoning are rewritten.
    fn rewrites_words(&self) -> bool {
        true
    }

    /// Returns the rewriter of tool call arguments, if they are rewritten: they are then held back
    /// until they are complete.
    fn of_arguments(&self) -> Option<&dyn Rewrite> {
        None
    }
}

impl Scanner {
    pub(crate) fn new(detectors: Vec<Arc<dyn Detector>>) -> Self {
        Self(detectors)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the last offset in `text`, not before `from`, where it can be cut although more may
    /// follow: no detector's passage crosses it. `from` must be such an offset.
    fn cut(&self, text: &str, from: usize) -> usize {
        let mut cut = text.len();
        loop {
            let before = cut;
            for detector in &self.0 {
                // The text after the end is not known yet.
                let goes_on = text[cut..].chars().next().is_none_or(|c| detector.may_contain(c));
                if goes_on {
                    cut = from + text[from..cut].trim_end_matches(|c| detector.may_contain(c)).len();
                }
            }
            if cut == before {
                return cut;
            }
        }
    }

    /// Returns a detector whose passage spans all of `text`.
    fn holder(&self, text: &str) -> Option<&Arc<dyn Detector>> {
        self.0.iter().find(|detector| text.chars().all(|c| detector.may_contain(c)))
    }

    /// Returns the findings in a part of `text` whose ends cut no passage.
    fn findings(&self, text: &str, part: &Range<usize>) -> Vec<Finding> {
        let mut all: Vec<(Range<usize>, usize)> = Vec::new();
        for (by, detector) in self.0.iter().enumerate() {
            for range in passages(&**detector, text, part) {
                let passage = Passage {
                    text: &text[range.clone()],
                    before: text[..range.start].chars().next_back(),
                    after: text[range.end..].chars().next(),
                };
                let found = detector.find(&passage).into_iter();
                let found = found.filter(|f| f.start < f.end && f.end <= passage.text.len());
                all.extend(found.map(|f| (whole(text, range.start + f.start..range.start + f.end), by)));
            }
        }
        all.sort_by_key(|(range, by)| (range.start, std::cmp::Reverse(range.end), *by));
        let mut findings: Vec<Finding> = Vec::new();
        for (range, by) in all {
            match findings.last_mut().filter(|last| range.start < last.range.end) {
                Some(last) => {
                    last.range.end = last.range.end.max(range.end);
                    last.by.push(by);
                }
                None => findings.push(Finding { range, by: vec![by] }),
            }
        }
        findings
    }
}

/// Returns the stretches of `part` that `detector` searches.
fn passages(detector: &dyn Detector, text: &str, part: &Range<usize>) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), part.start);
    while let Some(skipped) = text[at..part.end].find(|c| detector.may_contain(c)) {
        let start = at + skipped;
        let rest = &text[start..part.end];
        at = start + rest.find(|c| !detector.may_contain(c)).unwrap_or(rest.len());
        found.push(start..at);
    }
    found
}

/// Extends the range to character boundaries.
fn whole(text: &str, mut range: Range<usize>) -> Range<usize> {
    while !text.is_char_boundary(range.start) {
        range.start -= 1;
    }
    while !text.is_char_boundary(range.end) {
        range.end += 1;
    }
    range
}

impl dyn Rewrite {
    /// Returns the text with its findings replaced.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Result<Cow<'a, str>> {
        self.part(text, 0..text.len())
    }

    /// As [`text`](Self::text), for a part whose ends cut no passage.
    fn part<'a>(&self, text: &'a str, part: Range<usize>) -> Result<Cow<'a, str>> {
        let findings = self.scanner().findings(text, &part);
        if findings.is_empty() {
            return Ok(text[part].into());
        }
        let (mut out, mut at) = (String::new(), part.start);
        for finding in findings {
            out.push_str(&text[at..finding.range.start]);
            out.push_str(&self.replace(&finding, &text[finding.range.clone()])?);
            at = finding.range.end;
        }
        out.push_str(&text[at..part.end]);
        Ok(out.into())
    }

    /// Rewrites the arguments of a call as JSON values, so that escapes hide nothing.
    fn arguments<'a>(&self, arguments: &'a str) -> Result<Cow<'a, str>> {
        match exact::from_str(arguments) {
            Ok(value) => Ok(json(self, &value)?.map_or(arguments.into(), |changed| changed.to_string().into())),
            Err(_) => self.text(arguments),
        }
    }
}

impl fmt::Debug for Scanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|detector| detector.name())).finish()
    }
}
