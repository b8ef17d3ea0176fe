//! Passages, which are pieces of text small enough to quote, and their ranking.

use std::collections::{HashMap, HashSet};

use super::{
    kinds,
    outline::Outline,
    parse::{Hit, Line},
    rank::{Text, index},
    terms::Terms,
    words::stems,
};

/// Maximum lines of a passage.
const LINES: usize = 12;
/// Maximum gap in lines between two hits of one passage.
const GAP: u32 = 5;
/// Passages of one source in a row before those of other sources.
const IN_A_ROW: usize = 2;

/// Consecutive lines of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// A path, or another name of the source.
    pub(super) source: String,
    pub(super) lines: Vec<Line>,
}

impl Passage {
    /// Returns the numbers of the first and the last line, if lines are numbered.
    pub(super) fn range(&self) -> Option<(u32, u32)> {
        Some((self.lines.first()?.number?, self.lines.last()?.number?))
    }

    fn text<'a>(&'a self, headings: impl IntoIterator<Item = &'a str>) -> Text {
        Text {
            name: stems(&self.source),
            headings: headings.into_iter().flat_map(stems).collect(),
            body: self.lines.iter().flat_map(|line| stems(&line.text)).collect(),
        }
    }

    /// Returns the text regardless of its position, for deduplication.
    fn said(&self) -> String {
        self.lines.iter().flat_map(|line| line.text.split_whitespace()).collect::<Vec<_>>().join(" ")
    }
}

/// Splits a text into passages: at blank lines, and within blocks that are too long. A heading
/// stays with the following text.
pub(super) fn cut(source: &str, lines: &[Line]) -> Vec<Passage> {
    let mut passages: Vec<Vec<Line>> = Vec::new();
    for mut block in lines.split(|line| line.text.trim().is_empty()).filter(|block| !block.is_empty()) {
        if let Some(heading) = passages.last_mut().filter(|last| leads(last)) {
            let (first, rest) = block.split_at(block.len().min(LINES - heading.len()));
            heading.extend_from_slice(first);
            block = rest;
        }
        passages.extend(block.chunks(LINES).map(<[Line]>::to_vec));
    }
    passages.into_iter().map(|lines| Passage { source: source.to_owned(), lines }).collect()
}

/// Returns true for a heading or a line that announces the next block, which is no passage on its
/// own.
fn leads(block: &[Line]) -> bool {
    matches!(block, [line] if line.text.starts_with(['#', '=', '/']) || line.text.ends_with(':'))
}

/// Groups nearby hits into passages.
pub(super) fn group(mut hits: Vec<Hit>) -> Vec<Passage> {
    hits.sort_by(|a, b| (&a.path, &a.line).cmp(&(&b.path, &b.line)));
    hits.dedup();
    let mut passages: Vec<Passage> = Vec::new();
    for hit in hits {
        let close = |last: &Passage| last.range().zip(hit.line.number).is_some_and(|((_, end), at)| at - end <= GAP);
        match passages.last_mut() {
            Some(last) if last.source == hit.path && last.lines.len() < LINES && close(last) => {
                last.lines.push(hit.line);
            }
            _ => passages.push(Passage { source: hit.path, lines: vec![hit.line] }),
        }
    }
    passages
}

/// Ranks matching passages, best first, with their scores, each text once. The score considers the
/// passage, the surrounding headings of the file, and the kind of file.
pub(super) fn rank(passages: Vec<Passage>, terms: &Terms, outline: &Outline) -> Vec<(Passage, f64)> {
    let of_file = scores_of_files(&passages, terms, outline);
    let above = |passage: &Passage| outline.above(&passage.source, passage.range().map_or(0, |(_, last)| last));
    let ranked = index(passages.iter().map(|passage| passage.text(above(passage)))).rank(terms.query());
    let mut passages: Vec<_> = passages.into_iter().map(Some).collect();
    let mut seen = HashSet::new();
    let ranked = ranked.into_iter().filter_map(|(at, score)| {
        let passage = passages[at].take()?;
        let whole = score + of_file.get(&passage.source).copied().unwrap_or_default();
        let score = whole * kinds::weight(&passage.source, terms);
        Some((passage, score))
    });
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.retain(|(passage, _)| seen.insert(passage.said()));
    ranked
}

fn scores_of_files(passages: &[Passage], terms: &Terms, outline: &Outline) -> HashMap<String, f64> {
    let mut files: Vec<Passage> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for passage in passages {
        let number = *numbers.entry(&passage.source).or_insert(files.len());
        match files.get_mut(number) {
            Some(file) => file.lines.extend_from_slice(&passage.lines),
            None => files.push(passage.clone()),
        }
    }
    let ranked = index(files.iter().map(|file| file.text(outline.of(&file.source)))).rank(terms.query());
    ranked.into_iter().map(|(at, score)| (files[at].source.clone(), score)).collect()
}

/// Moves the third and later passages of a source behind the first two of every other source, and
/// so on: two files cover more than one.
pub(super) fn spread(ranked: Vec<(Passage, f64)>) -> Vec<(Passage, f64)> {
    let mut of_source: HashMap<String, usize> = HashMap::new();
    let turn = |(passage, score): (Passage, f64)| {
        let earlier = of_source.entry(passage.source.clone()).or_default();
        *earlier += 1;
        ((*earlier - 1) / IN_A_ROW, (passage, score))
    };
    let mut turns: Vec<_> = ranked.into_iter().map(turn).collect();
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, ranked)| ranked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::parse::{hits, lines};

    #[test]
    fn a_heading_stays_with_its_text_and_a_long_block_is_cut() {
        let text = format!("# Title\n\nA text\nof two lines\nand a third.\n\n{}", "code\n".repeat(30));
        let passages = cut("a.md", &lines(&text, 1));
        let ranges: Vec<_> = passages.iter().map(Passage::range).collect();
        assert_eq!(ranges, [Some((1, 5)), Some((7, 18)), Some((19, 30)), Some((31, 36))]);
    }

    #[test]
    fn hits_close_together_are_one_passage_and_none_counts_twice() {
        let found = hits("a.rs:10: x\na.rs:12: y\na.rs:10: x\na.rs:90: z\nb.rs:11: x");
        let ranges: Vec<_> = group(found).iter().map(|p| (p.source.clone(), p.range())).collect();
        let range = |path: &str, from, to| (path.to_owned(), Some((from, to)));
        assert_eq!(ranges, [range("a.rs", 10, 12), range("a.rs", 90, 90), range("b.rs", 11, 11)]);
    }

    #[test]
    fn one_source_does_not_crowd_out_the_others() {
        let found = hits("a.rs:1: retry 1\na.rs:40: retry 2\na.rs:80: retry 3\nb.rs:1: some words and retry");
        let order: Vec<_> = spread(rank(group(found), &Terms::of("retry"), &Outline::default()))
            .into_iter()
            .map(|(p, _)| p.source)
            .collect();
        assert_eq!(order, ["a.rs", "a.rs", "b.rs", "a.rs"]);
    }

    #[test]
    fn the_same_text_is_quoted_once() {
        let found = hits("README.md:1: retry three times\ndocs/README.md:9:   retry three  times\na.rs:1: retry twice");
        let order: Vec<_> =
            rank(group(found), &Terms::of("retry"), &Outline::default()).into_iter().map(|(p, _)| p.source).collect();
        assert_eq!(order.len(), 2, "{order:?}");
    }

    #[test]
    fn a_guide_comes_before_code_for_those_who_ask_what_to_do() {
        let first = |question: &str| {
            let found = hits("docs/guide/retry.md:9: how often retry is tried\nsrc/retry.rs:9: fn retry(times: u32) {");
            rank(group(found), &Terms::of(question), &Outline::default()).swap_remove(0).0.source
        };
        assert_eq!(first("How do I retry?"), "docs/guide/retry.md");
        assert_eq!(first("Where is `retry` defined?"), "src/retry.rs");
    }

    #[test]
    fn a_definition_comes_before_its_uses() {
        let passages = group(hits("a.rs:1: retry(3)\nb.rs:1: fn retry(times: u32)\nc.rs:1: retry(4)"));
        let best = rank(passages, &Terms::of("Where is `retry` defined?"), &Outline::default());
        assert_eq!(best[0].0.source, "b.rs");
    }
}
