//! Ordering rules that the protocol's own client enforces, and two further ones.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Open items, by kind and name.
type Open = BTreeMap<(&'static str, String), Option<String>>;

/// Checks the events of one run against the rules.
///
/// # Errors
/// The first event that violates a rule, with the reason.
pub(super) fn check(events: &[Value]) -> Result<(), String> {
    let mut open = Open::new();
    let (mut agents, mut gone): (BTreeSet<String>, BTreeSet<String>) = Default::default();
    let mut is_over = false;
    for (at, event) in events.iter().enumerate() {
        let kind = event["type"].as_str().ok_or("an event without a type")?;
        let broken = |how: &str| Err(format!("event {at} ({event}): {how}"));
        if has_null(event) {
            return broken("it has a null");
        }
        if (at == 0) != (kind == "RUN_STARTED") {
            return broken("a run begins once, and first");
        }
        if is_over {
            return broken("the run is over");
        }
        let owner = event["subagentRunId"].as_str().map(str::to_owned);
        if let Some(agent) = owner.as_ref().filter(|_| !kind.starts_with("SUBAGENT_"))
            && !agents.contains(agent)
        {
            return broken("it is of a sub-agent that is not under way");
        }
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let (message, call) = (text("messageId"), text("toolCallId"));
        let mut begins = |what: &'static str, name: String| match open.insert((what, name), owner.clone()) {
            Some(_) => Err(format!("event {at} ({event}): {what} is open already")),
            None => Ok(()),
        };
        match kind {
            "TEXT_MESSAGE_START" => begins("text", message)?,
            "REASONING_START" => begins("span", message)?,
            "REASONING_MESSAGE_START" => begins("thought", message)?,
            "TOOL_CALL_START" => begins("call", call)?,
            "STEP_STARTED" => begins("step", format!("{owner:?} {}", text("stepName")))?,
            "SUBAGENT_STARTED" => {
                let id = text("subagentRunId");
                if gone.contains(&id) || !agents.insert(id) {
                    return broken("it began before");
                }
                if event.get("parentSubagentRunId").is_some_and(|above| !agents.contains(above.as_str().unwrap_or("")))
                {
                    return broken("what it is below is not under way");
                }
            }
            "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => {
                let id = text("subagentRunId");
                if !agents.remove(&id) {
                    return broken("it is not under way");
                }
                if let Some(left) = open.iter().find(|(_, owner)| owner.as_ref() == Some(&id)) {
                    return broken(&format!("{left:?} is open in it"));
                }
                gone.insert(id);
            }
            "RUN_ERROR" => is_over = true,
            "RUN_FINISHED" => {
                is_over = true;
                if let Some(left) = open.keys().next() {
                    return broken(&format!("{left:?} is open"));
                }
                if let Some(left) = agents.first() {
                    return broken(&format!("the sub-agent {left} is under way"));
                }
                if event["outcome"]["interrupts"].as_array().is_some_and(Vec::is_empty) {
                    return broken("it waits for nothing");
                }
            }
            _ => {
                let goes_on = match kind {
                    "TEXT_MESSAGE_CONTENT" => Some((("text", message), false)),
                    "TEXT_MESSAGE_END" => Some((("text", message), true)),
                    "REASONING_MESSAGE_CONTENT" => Some((("thought", message), false)),
                    "REASONING_MESSAGE_END" => Some((("thought", message), true)),
                    "REASONING_END" => Some((("span", message), true)),
                    "TOOL_CALL_ARGS" => Some((("call", call), false)),
                    "TOOL_CALL_END" => Some((("call", call), true)),
                    "STEP_FINISHED" => Some((("step", format!("{owner:?} {}", text("stepName"))), true)),
                    // The client accepts this.
                    "TOOL_CALL_RESULT" if open.contains_key(&("call", call)) => {
                        return broken("the call has not ended");
                    }
                    _ => None,
                };
                if let Some((name, ends)) = goes_on {
                    match open.get(&name) {
                        None => return broken("it is not open"),
                        Some(began) if *began != owner => return broken("it is another's"),
                        Some(_) if ends => drop(open.remove(&name)),
                        Some(_) => {}
                    }
                }
            }
        }
    }
    // The client accepts this, too.
    if is_over { Ok(()) } else { Err("the run has no end".to_owned()) }
}

/// Custom events may contain anything.
fn has_null(event: &Value) -> bool {
    let theirs = ["snapshot", "delta", "value", "content", "patch", "metadata", "messages"];
    event.as_object().is_some_and(|fields| {
        let own = fields.iter().filter(|(name, _)| !theirs.contains(&name.as_str()));
        own.into_iter().any(|(_, value)| value.is_null() || has_null(value))
    })
}

#[test]
fn the_rules_refuse_what_the_client_refuses() {
    let (started, finished) = (r#"{"type":"RUN_STARTED"}"#, r#"{"type":"RUN_FINISHED"}"#);
    let start = r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#;
    let end = r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#;
    let sub = r#"{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}"#;
    let sub_end = r#"{"type":"SUBAGENT_FINISHED","subagentRunId":"s"}"#;
    let check = |events: &[&str]| {
        check(&events.iter().map(|event| serde_json::from_str(event).expect("JSON")).collect::<Vec<_>>())
    };
    assert_eq!(check(&[started, start, end, sub, sub_end, finished]), Ok(()));
    for wrong in [
        vec![start, end, finished],
        vec![started, start, finished],
        vec![started, start, start, end, finished],
        vec![started, end, finished],
        vec![started, finished, start],
        vec![started, sub, finished],
        vec![started, sub, sub_end, sub, sub_end, finished],
        vec![started],
        vec![started, r#"{"type":"STEP_STARTED","stepName":"s"}"#, finished],
        vec![started, r#"{"type":"CUSTOM","name":null}"#, finished],
    ] {
        assert!(check(&wrong).is_err(), "{wrong:?}");
    }
}
