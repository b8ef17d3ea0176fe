//! The splitter for server-sent events.

use agent_core::ErrorKind;
use agent_llm::{SseEvent, SseSplitter};
use proptest::prelude::*;

type Seen = Vec<(String, String)>;

fn split<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let (mut splitter, mut seen) = (SseSplitter::default(), Seen::new());
    let mut take = |event: SseEvent<'_>| {
        seen.push((event.name.into(), event.data.into()));
        Ok(())
    };
    for piece in pieces {
        splitter.push(piece, &mut take).expect("short events");
    }
    splitter.finish(take).expect("short events");
    seen
}

fn data(text: &str) -> Vec<String> {
    split([text.as_bytes()]).into_iter().map(|(_, data)| data).collect()
}

#[test]
fn every_line_end_ends_a_line() {
    for end in ["\n", "\r", "\r\n"] {
        assert_eq!(data(&"data: a#data: b##data: c##".replace('#', end)), ["a\nb", "c"], "{end:?}");
    }
}

#[test]
fn what_is_not_data_is_skipped() {
    let text = "\u{feff}data:a\n\n: comment\n\nid: 7\nretry: 10\nunknown: x\n\ndata\n\nevent: ping\ndata:  b\n\n";
    let events = split([text.as_bytes()]);
    let expected = [("", "a"), ("", ""), ("ping", " b")].map(|(name, data)| (name.to_owned(), data.to_owned()));
    assert_eq!(events, expected, "only one space after the colon is not data");
}

#[test]
fn the_last_event_may_lack_its_empty_line() {
    assert_eq!(data("data: a\n\ndata: b"), ["a", "b"]);
    assert_eq!(data("data: a\n\ndata: b\n"), ["a", "b"]);
}

#[test]
fn bytes_that_are_no_text_become_replacement_characters() {
    assert_eq!(split([&b"data: a\xFFb\n\n"[..]])[0].1, "a\u{fffd}b");
}

#[test]
fn an_event_that_never_ends_is_refused_before_it_fills_the_memory() {
    let flood = vec![b'x'; 600];
    for start in ["data: ", "", "data: y\ndata: "] {
        let mut splitter = SseSplitter::new(1_000);
        splitter.push(start.as_bytes(), |_| Ok(())).expect("short");
        splitter.push(&flood, |_| Ok(())).expect("not yet too long");
        let error = splitter.push(&flood, |_| Ok(())).expect_err("too long");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Protocol, false));
        assert!(error.message().contains("1000"), "{error}");
    }
}

fn lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "data: ?[a-zäß€😀:]{0,12}",
        "event: [a-z]{0,5}",
        ":[a-z ]{0,9}",
        Just(String::new()),
        Just("data: [DONE]".to_owned()),
        "[a-z:\u{feff} ]{0,6}",
    ];
    let end = prop_oneof![Just("\n"), Just("\r"), Just("\r\n")];
    prop::collection::vec((line, end), 0..20)
        .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect::<String>())
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(text in lines(), bom: bool, cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let text = if bom { format!("\u{feff}{text}") } else { text };
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
        prop_assert_eq!(split(pieces), split([bytes]));
        prop_assert_eq!(split(bytes.chunks(1)), split([bytes]));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        split([&bytes[..]]);
    }
}
