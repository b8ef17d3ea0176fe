//! Strategies for arbitrary messages, outputs and JSON values.

use agent_core::{
    AssistantMessage, Block, Media, Message, Part, SystemMessage, ToolMessage, ToolOutput, UserMessage,
    message::{Origin, Raw, Reasoning},
};
use proptest::{collection::vec, option, prelude::*};
use serde_json::Value;

pub(crate) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        proptest::num::f64::NORMAL.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((any::<String>(), inner), 0..3).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

/// A provider's JSON, with spaces that no serialiser would write.
pub(crate) fn raw() -> impl Strategy<Value = Raw> {
    let origin = ("[a-z]{1,4}", any::<String>(), any::<String>()).prop_map(|(w, p, m)| Origin::new(w, p, m));
    let text = (json(), " {0,2}").prop_map(|(value, space)| format!("{{{space}\"x\" :{space}{value}}}"));
    (origin, text).prop_map(|(origin, text)| Raw::parse(origin, text).expect("valid JSON"))
}

/// Few ids, so that calls and results often match or clash.
pub(crate) fn call_id() -> impl Strategy<Value = String> {
    prop_oneof![1 => Just(String::new()), 9 => "[ab]", 1 => Just("a-2".to_owned())]
}

fn media() -> impl Strategy<Value = Media> {
    (any::<String>(), option::of(raw()), any::<bool>()).prop_map(|(data, raw, url)| {
        let media = if url { Media::url(data) } else { Media::base64(data, "image/png") };
        media.with_raw(raw)
    })
}

pub(crate) fn block() -> impl Strategy<Value = Block> {
    let call = (call_id(), "[a-z]{1,5}", any::<String>())
        .prop_map(|(id, name, arguments)| Block::tool_call(id, name, arguments));
    let reasoning = (any::<String>(), option::of(any::<String>()), option::of(raw()))
        .prop_map(|(text, signature, raw)| Block::Reasoning(Reasoning { text, signature, encrypted: None, raw }));
    prop_oneof![
        3 => any::<String>().prop_map(Block::text),
        4 => call,
        1 => reasoning,
        1 => media().prop_map(Block::Image),
        1 => raw().prop_map(Block::Other),
    ]
}

pub(crate) fn assistant() -> impl Strategy<Value = AssistantMessage> {
    (vec(block(), 0..4), option::of(raw()), any::<bool>()).prop_map(|(blocks, raw, edited)| {
        let mut message = match raw {
            Some(raw) => AssistantMessage::from_provider(blocks, raw),
            None => AssistantMessage::new(blocks),
        };
        if edited {
            message.blocks_mut().reverse();
        }
        message
    })
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = prop_oneof![
        any::<String>().prop_map(Part::text),
        media().prop_map(Part::Document),
        raw().prop_map(Part::Other),
    ];
    vec(part, 0..3)
}

pub(crate) fn result() -> impl Strategy<Value = ToolMessage> {
    (call_id(), parts(), any::<bool>())
        .prop_map(|(id, parts, is_error)| ToolMessage::new(id, "tool", parts.into(), is_error))
}

/// Any message, regardless of its neighbours.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        1 => parts().prop_map(|parts| Message::System(SystemMessage::new(parts))),
        2 => parts().prop_map(|parts| Message::User(UserMessage::new(parts))),
        4 => assistant().prop_map(Message::Assistant),
        4 => result().prop_map(Message::Tool),
    ]
}

pub(crate) fn output() -> impl Strategy<Value = ToolOutput> {
    prop_oneof![
        parts().prop_map(ToolOutput::parts),
        json().prop_map(ToolOutput::value),
        (json(), parts()).prop_map(|(value, parts)| ToolOutput::value(value).shown_as(parts)),
        any::<String>().prop_map(ToolOutput::error),
    ]
}
