//! However a text is split into chunks, no part of a finding is released.

use agent_core::{Block, Chunk, message::Reasoning};
use agent_middleware::{
    Pii,
    pii::{PiiBuilder, PiiKind, PiiPattern, PiiStrategy, Scope},
};
use proptest::prelude::*;

use super::{
    END,
    common::{alone, block_on, root},
    folded, speak, text,
};

/// Returns each kind with texts in which it occurs at the beginning, in the middle, at the end,
/// next to others and twice.
fn subjects() -> Vec<(PiiKind, Vec<&'static str>)> {
    let pattern = |name, regex, scope| PiiKind::Pattern(PiiPattern::new(name, regex).within(scope));
    vec![
        (
            PiiKind::Email,
            vec!["jo.do@mail.example.com wrote", "to <a@b.co>, c@d.org.", "josé@exämple.org", "x@y z@w.de"],
        ),
        (PiiKind::CreditCard, vec!["4111 1111 1111 1111", "no 5 card 3782-822463-10005!", "12 4111111111111111 3"]),
        (PiiKind::Ip, vec!["from 192.168.10.254 on", "2001:db8:0:1::7", "10.0.0.1:80, [fe80::1]", "1.2.3 v 8.8.8.8."]),
        (PiiKind::Mac, vec!["is 00:1a:2b:3c:4d:5e.", "001a.2b3c.4d5e", "00-1A-2B-3C-4D-5E 00:1a"]),
        (PiiKind::Url, vec!["![x](https://a.example/p?q=1#f) y", "see www.example.com/a, or b", "postgres://u:p@h/db"]),
        (PiiKind::Phone, vec!["call +49 (0)30 123456 now", "(555) 123-4567", "a 01 23 45 67 89 b", "020 7946 0958."]),
        (
            PiiKind::Iban,
            vec!["to DE89 3704 0044 0532 0130 00 please", "gb82west12345698765432", "A DE89370400440532013000"],
        ),
        (
            PiiKind::Secret,
            vec!["key=sk-proj-abcdefghijklmnop1234;", "AKIAIOSFODNN7EXAMPLE", "eyJhbGciOiJIUzI1NiJ9.e30.c2ln x"],
        ),
        (pattern("badge", r"B-\d{3}", Scope::Word), vec!["has B-123, B-12 and B-4567", "B-123"]),
        (pattern("staff", r"staff no \d+", Scope::Line), vec!["my staff no 77 is\nstaff no 8", "staff no 123"]),
        (pattern("note", r"(?s)<note>.*?</note>", Scope::Text), vec!["a <note>b\nc</note> d", "<note>x</note>"]),
    ]
}

fn pii(kinds: impl IntoIterator<Item = PiiKind>) -> Pii {
    kinds.into_iter().fold(Pii::builder(), PiiBuilder::redact).build().expect("sound")
}

/// Returns the final text, after checking that the streamed text was a prefix of it at every
/// moment.
fn kept(pii: Pii, pieces: &[&str]) -> String {
    let run = root(|_| {});
    let chunks = pieces.iter().map(|piece| text(piece)).chain([END]).collect();
    let (heard, kept) = block_on(speak(&alone(pii), run.cx(), chunks));
    let kept = kept.expect("answers").message.text();
    let mut so_far = String::new();
    for chunk in &heard {
        if let Chunk::Text { delta, .. } = chunk {
            so_far.push_str(delta);
            assert!(kept.starts_with(&so_far), "{so_far:?} was heard of {kept:?} in {pieces:?}");
        }
    }
    assert_eq!(so_far, kept, "what was heard is what is kept");
    assert_eq!(heard.last(), Some(&END));
    kept
}

/// Returns the character boundaries of a text.
fn borders(text: &str) -> Vec<usize> {
    (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect()
}

#[test]
fn no_split_into_three_chunks_lets_anything_out() {
    for (kind, texts) in subjects() {
        for text in texts {
            let whole = pii([kind.clone()]).redact(text).expect("redacts");
            assert!(whole.contains('['), "{kind:?} is found in {text:?}: {whole:?}");
            let borders = borders(text);
            for (nth, first) in borders.iter().enumerate() {
                for second in &borders[nth..] {
                    let pieces = [&text[..*first], &text[*first..*second], &text[*second..]];
                    assert_eq!(kept(pii([kind.clone()]), &pieces), whole, "{kind:?} in {pieces:?}");
                }
            }
        }
    }
}

#[test]
fn chunks_of_one_character_let_nothing_out_though_all_kinds_are_looked_for() {
    let (kinds, texts): (Vec<_>, Vec<_>) =
        subjects().into_iter().filter(|(kind, _)| !matches!(kind, PiiKind::Pattern(_))).unzip();
    let text = texts.concat().join("\n");
    let whole = pii(kinds.clone()).redact(&text).expect("redacts");
    let borders = borders(&text);
    let pieces: Vec<_> = borders.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect();
    assert_eq!(kept(pii(kinds), &pieces), whole);
}

#[test]
fn prose_is_held_back_by_no_more_than_a_word() {
    let run = root(|_| {});
    let kinds = [PiiKind::Email, PiiKind::CreditCard, PiiKind::Ip, PiiKind::Phone, PiiKind::Iban, PiiKind::Secret];
    let said = "Here is what I found out about them";
    let chunks = said.split_inclusive(' ').map(text).chain([END]).collect();
    let (heard, _) = block_on(speak(&alone(pii(kinds)), run.cx(), chunks));
    let deltas = heard.iter().filter_map(|chunk| match chunk {
        Chunk::Text { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    let deltas: Vec<_> = deltas.collect();
    assert_eq!(deltas.len(), 8, "{deltas:?}");
}

#[test]
fn an_attempt_that_begins_anew_leaves_nothing_behind() {
    let run = root(|_| {});
    let chunks = vec![text("mail jo@exam"), Chunk::Restart, text("ple.com is "), text("no address"), END];
    let (heard, kept) = block_on(speak(&alone(pii([PiiKind::Email])), run.cx(), chunks));
    assert_eq!(kept.expect("answers").message.text(), "ple.com is no address");
    assert_eq!(folded(&heard).text(), "ple.com is no address");
}

#[test]
fn blocks_stay_in_their_order_though_the_first_is_held_back() {
    let run = root(|_| {});
    let chunks = vec![
        text("a@b.co"),
        Chunk::ToolCall { index: 1, id: "c1".into(), name: "f".into() },
        Chunk::Arguments { index: 1, delta: "{\"to\": \"a@b.co\"}".into() },
        Chunk::End { index: 1 },
        END,
    ];
    let (heard, kept) = block_on(speak(&alone(pii([PiiKind::Email])), run.cx(), chunks));
    let message = kept.expect("answers").message;
    assert_eq!(message.blocks(), [Block::text("[EMAIL]"), Block::tool_call("c1", "f", "{\"to\": \"a@b.co\"}")]);
    assert_eq!(folded(&heard).blocks(), message.blocks());
}

#[test]
fn arguments_are_read_as_json_however_they_are_escaped_and_split() {
    let arguments = r#"{"to": "a\u0040b.co", "card": 4111111111111111, "n": 1}"#;
    for at in borders(arguments) {
        let run = root(|_| {});
        let piece = |delta: &str| Chunk::Arguments { index: 0, delta: delta.to_owned() };
        let begin = Chunk::ToolCall { index: 0, id: "c1".into(), name: "f".into() };
        let chunks = vec![begin, piece(&arguments[..at]), piece(&arguments[at..]), END];
        let pii = Pii::builder().redact(PiiKind::Email).redact(PiiKind::CreditCard).tool_input(true).build();
        let (heard, kept) = block_on(speak(&alone(pii.expect("sound")), run.cx(), chunks));
        let message = kept.expect("answers").message;
        let call = message.calls().next().expect("calls");
        assert_eq!(call.arguments, r#"{"card":"[CREDIT_CARD]","n":1,"to":"[EMAIL]"}"#);
        assert_eq!(folded(&heard).blocks(), message.blocks());
    }
}

#[test]
fn thinking_that_changed_loses_its_proof_and_other_thinking_keeps_it() {
    for (said, left, proof) in [("ask a@b.co", "ask [EMAIL]", None), ("ask them", "ask them", Some("proof".to_owned()))]
    {
        let run = root(|_| {});
        let whole = Reasoning { text: said.into(), signature: Some("proof".into()), ..Reasoning::default() };
        let chunks = vec![
            Chunk::Reasoning { index: 0, delta: said[..5].to_owned() },
            Chunk::Reasoning { index: 0, delta: said[5..].to_owned() },
            Chunk::Block { index: 0, block: Block::Reasoning(whole) },
            END,
        ];
        let (heard, kept) = block_on(speak(&alone(pii([PiiKind::Email])), run.cx(), chunks));
        let expected = Block::Reasoning(Reasoning { text: left.into(), signature: proof, ..Reasoning::default() });
        assert_eq!(kept.expect("answers").message.blocks(), std::slice::from_ref(&expected));
        assert_eq!(folded(&heard).blocks(), [expected]);
    }
}

#[test]
fn what_is_blocked_ends_the_call_before_any_of_it_is_heard() {
    let run = root(|_| {});
    let pii = Pii::builder().rule(PiiKind::Email, PiiStrategy::Block).build().expect("sound");
    let chunks = vec![text("It is jo@exa"), text("mple.com, I thi"), text("nk."), END];
    let (heard, kept) = block_on(speak(&alone(pii), run.cx(), chunks));
    assert_eq!(folded(&heard).text(), "It is ");
    let e = kept.expect_err("is blocked");
    assert_eq!(e.kind(), agent_core::ErrorKind::ContentFiltered);
    assert!(!format!("{e:?}").contains("exa"), "{e:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A text with all kinds of data, split anywhere, is rewritten like the whole text.
    #[test]
    fn a_text_in_pieces_is_rewritten_as_the_whole(
        words in prop::collection::vec(prop::sample::select(vec![
            "a@b.co", "4111", " ", "1111", "-", "+49 30 1234567", "é", "DE89370400440532013000", "10.0.0.1", ":", "::", ".",
            "https://x.y/z", "(", ")", "sk-abcdefghijklmnop12", "\n", "00:1a:2b:3c:4d:5e", "word", "谢谢", "B-123", "@", "1", "A",
        ]), 0..24),
        lengths in prop::collection::vec(1usize..7, 1..60),
    ) {
        let (kinds, _): (Vec<_>, Vec<_>) = subjects().into_iter().unzip();
        let kinds: Vec<_> = kinds.into_iter().filter(|kind| !matches!(kind, PiiKind::Pattern(p) if p.scope != Scope::Word)).collect();
        let text = words.concat();
        let borders = borders(&text);
        let (mut pieces, mut at, mut turn) = (Vec::new(), 0, 0);
        while at + 1 < borders.len() {
            let next = (at + lengths[turn % lengths.len()]).min(borders.len() - 1);
            pieces.push(&text[borders[at]..borders[next]]);
            (at, turn) = (next, turn + 1);
        }
        let whole = pii(kinds.clone()).redact(&text).expect("redacts");
        prop_assert_eq!(kept(pii(kinds), &pieces), whole);
    }
}
