//! Texts with calls, whole and in pieces.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(pieces: &[&str], cut: bool) -> Vec<Piece> {
    let (mut reader, mut out) = (Reader::new(ToolSpecs::default()), Vec::new());
    pieces.iter().for_each(|piece| reader.push(piece, &mut out));
    reader.end(cut, &mut out);
    joined(out)
}

/// Joins consecutive texts.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (out.last_mut(), piece) {
            (Some(Piece::Text(text)), Piece::Text(more)) => text.push_str(&more),
            (_, piece) => out.push(piece),
        }
    }
    out
}

/// Returns the text and the calls in a text.
fn said(text: &str) -> (String, Vec<(String, String)>) {
    let (mut said, mut calls) = (String::new(), Vec::new());
    for piece in read(&[text], false) {
        match piece {
            Piece::Text(text) => said.push_str(&text),
            Piece::Begins(name) => calls.push((name.to_string(), "unfinished".to_owned())),
            Piece::Called(arguments) => calls.last_mut().expect("it has begun").1 = arguments,
        }
    }
    (said, calls)
}

fn calls(text: &str) -> Vec<(String, String)> {
    said(text).1
}

fn call(name: &str, arguments: &str) -> (String, String) {
    (name.to_owned(), arguments.to_owned())
}

const A: &str = "<tool_use><tool_name>a</tool_name><parameter><x>1</x></parameter></tool_use>";

#[test]
fn text_before_a_call_is_text_and_what_follows_it_is_dropped() {
    let text = format!("I will look.\n\n{A}\nIt says 7. {A}");
    assert_eq!(said(&text), ("I will look.".to_owned(), vec![call("a", r#"{"x":"1"}"#)]));
    for plain in ["", "hello ", "a < b", "<tool_uses>", "<tool_use", "x </tool_use> y", "<use it>"] {
        assert_eq!(said(plain), (plain.to_owned(), vec![]), "{plain}");
    }
}

#[test]
fn several_calls_are_read_one_after_the_other_and_in_a_group() {
    let two = vec![call("a", r#"{"x":"1"}"#), call("b", "{}")];
    let b = "<tool_use><tool_name>b</tool_name></tool_use>";
    assert_eq!(calls(&format!("{A}\n{b}")), two);
    let group = format!("<use_parallel_tool_calls>\n first: {A} then: {b}\n</use_parallel_tool_calls>");
    assert_eq!(calls(&group.replace("tool_use>", "parallel_tool>")), two);
    assert_eq!(calls(&group), two);
    assert_eq!(calls(&format!("{group} {A}")).len(), 3);
}

#[test]
fn code_that_shows_a_call_makes_none() {
    for shown in [
        format!("```xml\n{A}\n```\nThat is how."),
        format!("  ~~~~\n{A}\n~~~\n{A}"),
        format!("Write `{A}` to call."),
        format!("Write ``a ` {A}`` to call."),
    ] {
        assert_eq!(said(&shown), (shown.clone(), vec![]), "{shown}");
    }
    assert_eq!(calls(&format!("```\ncode\n```\n{A}")).len(), 1);
    assert_eq!(calls(&format!("It`s an apostrophe.\n{A}")).len(), 1, "a span ends with its line");
}

#[test]
fn broken_calls_are_read_as_far_as_they_go() {
    let open = &A[..A.len() - "</tool_use>".len()];
    assert_eq!(calls(open), [call("a", r#"{"x":"1"}"#)], "a stop sequence leaves the end out");
    assert_eq!(calls(&format!("{open}\n{A}")).len(), 2);
    assert_eq!(calls(&format!("<use_parallel_tool_calls>{open}</use_parallel_tool_calls>{A}")).len(), 2);
    assert_eq!(
        calls("<tool_use><tool_name>a</tool_name><parameter><x>1</parameter></tool_use>"),
        [call("a", r#"{"x":"1"}"#)]
    );
    assert_eq!(calls(r#"<tool_use name="a"><x>1</x></tool_use>"#), [call("a", r#"{"x":"1"}"#)]);
    assert_eq!(calls("<tool_use><x>1</x></tool_use>"), [call("unknown", r#"{"x":"1"}"#)]);
    let none = " <use_parallel_tool_calls> Be quick! </use_parallel_tool_calls> <tool_use></tool_use>";
    assert_eq!(said(none), (none.to_owned(), vec![]), "markup without a call is text");
    assert_eq!(calls(&format!("<tool_use>{A}</tool_use>")), [call("a", r#"{"x":"1"}"#)]);
}

#[test]
fn a_value_may_speak_of_calls_itself() {
    let shown = format!("<tool_use><tool_name>w</tool_name><parameter><text>{A}</text></parameter></tool_use>");
    assert_eq!(calls(&shown), [call("w", &json!({"text": A}).to_string())]);
    let section = "<tool_use><tool_name>w</tool_name><text><![CDATA[</tool_use>]]></text></tool_use>";
    assert_eq!(calls(section), [call("w", r#"{"text":"</tool_use>"}"#)]);
}

#[test]
fn a_call_is_announced_as_soon_as_its_name_is_certain() {
    let (mut reader, mut out) = (Reader::new(ToolSpecs::default()), Vec::new());
    reader.push("Look: <tool_use>\n<tool_name>weather</tool_name>", &mut out);
    assert_eq!(out, [Piece::Text("Look:".into()), Piece::Begins("weather".into())]);
    assert!(reader.is_in_call());
}

#[test]
fn what_was_cut_is_no_call_that_could_be_run_and_no_markup_is_shown() {
    let cut = read(&["Look: <tool_use><tool_name>a</tool_name><parameter><x>half a"], true);
    assert_eq!(cut[..2], [Piece::Text("Look:".into()), Piece::Begins("a".into())]);
    let Piece::Called(arguments) = &cut[2] else { panic!("a call") };
    assert!(serde_json::from_str::<serde_json::Value>(arguments).is_err(), "{arguments}");
    assert_eq!(read(&["Look: <tool_u"], true), [Piece::Text("Look: ".into())]);
    assert_eq!(read(&["Look: <tool_u"], false), [Piece::Text("Look: <tool_u".into())]);
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "text ",
        "\n",
        " ",
        "`",
        "```",
        "~~~\n",
        "<",
        ">",
        "é🦀",
        "<tool_use>",
        "</tool_use>",
        "<parallel_tool>",
        "</parallel_tool>",
        "<use_parallel_tool_calls>",
        "</use_parallel_tool_calls>",
        "<tool_name>",
        "a",
        "</tool_name>",
        "<parameter>",
        "</parameter>",
        "<x>",
        "</x>",
        "<y name=\"z\">",
        "</y>",
        "{\"k\": 1}",
        "<![CDATA[",
        "]]>",
        "]",
        "&lt;",
        "&",
    ]);
    prop_oneof![
        prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat()),
        (".{0,20}", ".{0,20}").prop_map(|(before, after)| format!("{before}{A}{after}")),
    ]
}

proptest! {
    #[test]
    fn where_the_pieces_end_does_not_matter(
        text in any_text(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        cut in any::<bool>(),
    ) {
        let mut ends: Vec<_> = places.iter().map(|place| place.index(text.len() + 1)).collect();
        ends.retain(|end| text.is_char_boundary(*end));
        ends.sort_unstable();
        ends.push(text.len());
        let starts = [0].into_iter().chain(ends.clone());
        let pieces: Vec<_> = starts.zip(ends.clone()).map(|(start, end)| &text[start..end]).collect();
        prop_assert_eq!(read(&pieces, cut), read(&[&text], cut));
        let bytes: Vec<_> = text.split_inclusive(|_: char| true).collect();
        prop_assert_eq!(read(&bytes, cut), read(&[&text], cut));
    }
}
