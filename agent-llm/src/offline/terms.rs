//! Search terms of a question.

use agent_retrieval::search::{names, parts};

use crate::language::{has, is_stop, stem};

/// First-person words.
const ASKERS: &str = "i me my mine we us our one";

/// Words that occur in nearly every file of a project: used for ranking, not for searching.
const WEAK: &str = "class code codebase crate define defined defines definition directory documentation example file \
    files folder function implement implementation implemented implements line lines method module package part parts \
    project readme repo repository source struct workspace";

const NAMED: f64 = 2.0;
const WORD: f64 = 1.0;
const PART: f64 = 0.5;
const HINT: f64 = 0.3;

/// A search term.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    /// Spelling in the question.
    pub(super) word: String,
    pub(super) stem: String,
    /// Significance; an ordinary word has 1.
    pub(super) weight: f64,
}

impl Term {
    fn new(word: &str, weight: f64) -> Self {
        Self { word: word.to_owned(), stem: stem(&parts(word).concat()), weight }
    }

    /// Returns a regular expression that matches all forms of the word.
    pub(super) fn pattern(&self) -> String {
        match parts(&self.word)[..] {
            [_] if self.stem.chars().count() < 4 => format!(r"\b{}\b", self.word),
            [_] => self.stem.clone(),
            ref parts => parts.join("[_-]?"),
        }
    }
}

/// Search terms of a question, strongest first, and the files that it names.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    terms: Vec<Term>,
    files: Vec<String>,
    is_practical: bool,
}

impl Terms {
    pub(super) fn of(question: &str) -> Self {
        let mut found = Self::default();
        for token in question.split_whitespace() {
            let bare = token.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '/'));
            let bare = bare.trim_end_matches(['.', '/']);
            if is_file_name(bare) {
                found.files.push(bare.trim_start_matches("./").to_owned());
            }
            let quoted = token.starts_with(['`', '"', '\'']);
            names(bare).for_each(|name| found.add_name(name, quoted));
        }
        found.is_practical = names(question).any(|name| has(ASKERS, &name.to_lowercase()));
        found.terms.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(b.word.len().cmp(&a.word.len())));
        found
    }

    fn add_name(&mut self, name: &str, quoted: bool) {
        let lower = name.to_lowercase();
        let parts = parts(name);
        let shouted = name.chars().count() > 1 && !name.chars().any(char::is_lowercase) && name != lower;
        if quoted || parts.len() > 1 || shouted {
            self.add(Term::new(name, NAMED));
            let parts = parts.iter().filter(|part| parts.len() > 1 && part.chars().count() > 2);
            parts.for_each(|part| self.add(Term::new(&part.to_lowercase(), PART)));
        } else if has(WEAK, &lower) {
            self.add(Term::new(&lower, HINT));
        } else if lower.chars().count() > 1 && !is_stop(&lower) {
            self.add(Term::new(&lower, WORD));
        }
    }

    fn add(&mut self, term: Term) {
        match self.terms.iter_mut().find(|known| known.stem == term.stem) {
            Some(known) if known.weight < term.weight => *known = term,
            Some(_) => {}
            None => self.terms.push(term),
        }
    }

    /// Returns true if prose answers better than code: the question is about what its author can
    /// do, or it names nothing that occurs only in code.
    pub(super) fn wants_prose(&self) -> bool {
        self.is_practical || self.terms.iter().all(|term| term.weight < NAMED)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.files.is_empty()
    }

    /// Returns the terms worth searching for.
    pub(super) fn strong(&self) -> impl Iterator<Item = &Term> {
        self.terms.iter().filter(|term| term.weight >= WORD)
    }

    /// Returns stems and weights, for ranking.
    pub(super) fn query(&self) -> impl Iterator<Item = (&str, f64)> {
        self.terms.iter().map(|term| (term.stem.as_str(), term.weight))
    }

    pub(super) fn files(&self) -> &[String] {
        &self.files
    }

    /// Returns the terms for display.
    pub(super) fn names(&self) -> Vec<&str> {
        let strong: Vec<_> = self.strong().map(|term| term.word.as_str()).collect();
        if strong.is_empty() { self.terms.iter().map(|term| term.word.as_str()).collect() } else { strong }
    }
}

/// Returns true for a name with an extension of up to five letters and digits: `src/lib.rs`, but
/// not `3.5` or `e.g`.
fn is_file_name(token: &str) -> bool {
    let name = token.rsplit('/').next().unwrap_or(token);
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let is_extension = (1..=5).contains(&extension.len())
        && extension.chars().all(|c| c.is_ascii_alphanumeric())
        && extension.chars().any(|c| c.is_ascii_alphabetic());
    is_extension && stem.len() > 1 && !token.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(question: &str) -> Vec<String> {
        Terms::of(question).terms.into_iter().map(|t| t.word).collect()
    }

    #[test]
    fn names_come_before_words_and_stop_words_do_not_come_at_all() {
        assert_eq!(
            words("How does the ChunkSink handle cancellation?"),
            ["ChunkSink", "cancellation", "handle", "chunk", "sink"]
        );
        assert!(words("What is it, and how does this work?").is_empty());
    }

    #[test]
    fn files_are_told_from_numbers_abbreviations_and_alternatives() {
        let files = |question| Terms::of(question).files;
        assert_eq!(
            files("Compare `src/lib.rs`, ./Cargo.toml and README.md."),
            ["src/lib.rs", "Cargo.toml", "README.md"]
        );
        assert!(files("Since 3.5, e.g. input/output or https://example.org").is_empty());
    }

    #[test]
    fn a_pattern_finds_every_form_and_spelling() {
        let pattern = |question| Terms::of(question).strong().next().map(Term::pattern);
        assert_eq!(pattern("retries"), Some("retr".to_owned()));
        assert_eq!(pattern("max_retries"), Some("max[_-]?retries".to_owned()));
        assert_eq!(pattern("MessageBuilder"), Some("Message[_-]?Builder".to_owned()));
        assert_eq!(pattern("tls"), Some(r"\btls\b".to_owned()), "a short word is not a prefix");
    }

    #[test]
    fn words_of_every_project_only_help_to_rank() {
        let terms = Terms::of("Which function implements retries?");
        assert_eq!(terms.strong().map(|t| t.word.as_str()).collect::<Vec<_>>(), ["retries"]);
        assert_eq!(terms.query().count(), 3);
    }
}
