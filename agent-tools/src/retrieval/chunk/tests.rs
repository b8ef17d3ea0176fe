use proptest::prelude::*;

use super::*;

fn chunks(max: u64, overlap: u64, text: &str, kind: TextKind) -> Vec<Chunk> {
    Chunker::new(max).overlap(overlap).counter(Words).build().expect("builds").chunk(text, kind)
}

/// Counts words as tokens.
struct Words;

impl TokenCounter for Words {
    fn text(&self, text: &str) -> u64 {
        text.split_whitespace().count() as u64
    }
}

/// Counts bytes as tokens, for text without words.
struct Bytes;

impl TokenCounter for Bytes {
    fn text(&self, text: &str) -> u64 {
        text.len() as u64
    }
}

fn texts(chunks: &[Chunk]) -> Vec<&str> {
    chunks.iter().map(|chunk| chunk.text.trim()).collect()
}

#[test]
fn a_section_is_a_chunk_and_knows_its_headings() {
    let text = "# Guide\n\nAll about it here.\n\n## Tools\n\nOne two three four.\n\n### Your own\n\nFive six seven.\n\n## Agents\n\nEight nine ten.\n";
    let chunks = chunks(12, 0, text, TextKind::Markdown);
    let headings: Vec<_> = chunks.iter().map(|chunk| (chunk.headings.join(" > "), chunk.lines)).collect();
    let expected = [
        ("Guide", (1, 4)),
        ("Guide > Tools", (5, 8)),
        ("Guide > Tools > Your own", (9, 12)),
        ("Guide > Agents", (13, 15)),
    ];
    assert_eq!(headings, expected.map(|(path, lines)| (path.to_owned(), lines)));
}

#[test]
fn a_heading_stays_with_its_text() {
    let text = format!("some words before it\n\n# Heading\n\n{}\n", "word ".repeat(9));
    let chunks = chunks(11, 0, &text, TextKind::Markdown);
    assert!(chunks[1].text.starts_with("# Heading") && chunks[1].text.contains("word"), "{chunks:?}");
}

#[test]
fn headings_that_are_underlined_are_headings_and_signs_in_fences_are_not() {
    let text = "Title\n=====\n\none two\n\nPart\n----\n\n```sh\n# no heading\n```\n\nthree four\n";
    let chunks = chunks(6, 0, text, TextKind::Markdown);
    let last = chunks.last().expect("a chunk");
    assert_eq!(last.headings, ["Title", "Part"], "{chunks:?}");
}

#[test]
fn a_fence_and_a_table_that_fit_are_whole() {
    let fence = format!("```rust\n{}```\n", "let a;\n\n".repeat(8));
    let table = format!("| a | b |\n|---|---|\n{}", "| 1 | 2 |\n".repeat(3));
    for whole in [&fence, &table] {
        for before in 0..20 {
            let text = format!("{}\n\n{whole}\n{}", "word\n".repeat(before), "word\n".repeat(20));
            let chunks = chunks(24, 4, &text, TextKind::Markdown);
            assert!(chunks.iter().any(|chunk| chunk.text.contains(whole.trim_end())), "{before}: {chunks:?}");
        }
    }
}

#[test]
fn a_fence_that_does_not_fit_is_cut_between_lines() {
    let text = format!("```\n{}```\n", "one two three\n".repeat(10));
    let chunks = chunks(7, 0, &text, TextKind::Markdown);
    assert!(chunks.len() > 4 && chunks.iter().all(|chunk| chunk.text.ends_with('\n')), "{chunks:?}");
}

#[test]
fn programs_are_cut_between_their_items() {
    let item = |name: &str| format!("/// About {name}.\nfn {name}() {{\n    let a = 1;\n\n    let b = 2;\n}}\n");
    let text = ["one", "two", "three"].map(item).join("\n");
    let items = chunks(16, 0, &text, TextKind::Code);
    assert_eq!(texts(&items), ["one", "two", "three"].map(|name| item(name).trim().to_owned()));
    let python = "def one():\n    a = 1\n\n    b = 2\n\ndef two():\n    c = 3\n";
    assert_eq!(chunks(10, 0, python, TextKind::Code).len(), 2);
}

#[test]
fn chunks_of_one_text_overlap_by_whole_lines_and_those_of_two_sections_do_not() {
    let lines: String = (0..20).map(|n| format!("line {n}\n")).collect();
    let chunks = chunks(10, 4, &format!("# A\n{lines}# B\n{lines}"), TextKind::Markdown);
    for pair in chunks.windows(2) {
        let overlap = pair[0].bytes.end - pair[1].bytes.start;
        let is_new = pair[1].text.starts_with("# B");
        assert_eq!(overlap == 0, is_new, "{pair:?}");
    }
    assert!(chunks[0].text.ends_with("line 2\nline 3\n") && chunks[1].text.starts_with("line 2\n"), "{chunks:?}");
}

#[test]
fn a_line_without_end_is_cut_at_sentences_and_words() {
    let text = "One two three. Four five six. Seven eight nine ten eleven twelve thirteen fourteen fifteen.";
    let chunks = chunks(7, 0, text, TextKind::Text);
    assert_eq!(texts(&chunks)[0], "One two three. Four five six.");
    assert!(chunks.iter().all(|chunk| chunk.lines == (1, 1)), "{chunks:?}");
}

#[test]
fn settings_that_cannot_work_are_refused_and_a_blank_text_has_no_chunks() {
    assert!(Chunker::new(0).build().is_err() && Chunker::new(10).overlap(6).build().is_err());
    assert!(chunks(9, 0, " \n\n\t\n", TextKind::Markdown).is_empty());
}

/// Generates typical lines in any order.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("# One".to_owned()),
        Just("### Two ##".to_owned()),
        Just("====".to_owned()),
        Just("---".to_owned()),
        Just("```rust".to_owned()),
        Just("```".to_owned()),
        Just("~~~".to_owned()),
        Just("| a | b |".to_owned()),
        Just("}".to_owned()),
        Just("    indented".to_owned()),
        "[a-zäß猫 .]{0,60}",
        "\\PC{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn chunks_cover_the_text_in_order_and_none_is_too_large(
        lines in prop::collection::vec(line(), 0..40),
        kind in prop_oneof![Just(TextKind::Text), Just(TextKind::Markdown), Just(TextKind::Code)],
        ends in prop_oneof![Just("\n"), Just("\r\n")],
        max in 8..60_u64,
        part in 0..3_u64,
    ) {
        let text = lines.join(ends);
        let chunker = Chunker::new(max).overlap(max * part / 4).counter(Bytes).build().expect("builds");
        let chunks = chunker.chunk(&text, kind);
        prop_assert_eq!(chunks.is_empty(), text.trim().is_empty());
        let mut covered = 0;
        for (at, chunk) in chunks.iter().enumerate() {
            prop_assert_eq!(&text[chunk.bytes.clone()], chunk.text.as_str());
            prop_assert!(chunk.text.len() as u64 <= max, "{} of {max}", chunk.text.len());
            prop_assert!(chunk.bytes.start <= covered && chunk.bytes.end > covered, "{:?} after {covered}", chunk.bytes);
            prop_assert!(at == 0 || chunk.bytes.start > chunks[at - 1].bytes.start);
            covered = chunk.bytes.end;
            let line_of = |at: usize| text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            prop_assert_eq!(chunk.lines, (line_of(chunk.bytes.start), line_of(chunk.bytes.end - 1)));
        }
        prop_assert!(chunks.is_empty() || covered == text.len());
    }
}
