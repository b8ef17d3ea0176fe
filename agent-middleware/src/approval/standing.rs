//! Decisions that hold for the rest of the session.

use std::collections::BTreeMap;

use agent_core::{GlobalStorage, Key, Result, RunCx};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Remember;

const RULES: Key<Rules> = Key::new("rules");

/// A decision that holds on. Ordered: of several, the stricter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rule {
    Allow,
    Deny,
}

/// The standing decisions of one agent in one session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Rules {
    tools: BTreeMap<String, Rule>,
    /// By tool and arguments.
    calls: BTreeMap<String, Rule>,
}

impl Rules {
    /// The standing decision about a call, if there is one.
    pub(super) fn find(cx: &RunCx, tool: &str, args: &Value) -> Result<Option<Rule>> {
        let Some(rules) = storage(cx).get(&RULES)? else { return Ok(None) };
        Ok(rules.tools.get(tool).max(rules.calls.get(&call_key(tool, args))).copied())
    }

    /// Keeps a decision. It never softens one that is there.
    pub(super) fn keep(cx: &RunCx, tool: &str, args: &Value, scope: Remember, rule: Rule) -> Result<()> {
        storage(cx).update(&RULES, |rules| {
            let mut rules = rules.unwrap_or_default();
            let kept = match scope {
                Remember::Tool => rules.tools.entry(tool.to_owned()),
                Remember::Call => rules.calls.entry(call_key(tool, args)),
            };
            kept.and_modify(|old| *old = rule.max(*old)).or_insert(rule);
            rules
        })?;
        Ok(())
    }
}

/// Apart for each agent of the hierarchy: two may give one name to different tools.
fn storage(cx: &RunCx) -> GlobalStorage {
    cx.globals().scope("approval").scope(&cx.ids().agent)
}

fn call_key(tool: &str, args: &Value) -> String {
    format!("{tool} {}", canonical(args))
}

/// The same text for equal values, in whatever order their fields came.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<_, _> = fields.iter().collect();
            let fields = sorted.into_iter().map(|(name, v)| format!("{}:{}", Value::from(name.as_str()), canonical(v)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{History, testing::detached_run};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_fields_makes_no_other_call() {
        let one: Value = serde_json::from_str(r#"{"a": [1, {"x": 1, "y": 2}], "b": "q"}"#).expect("parses");
        let same: Value = serde_json::from_str(r#"{"b": "q", "a": [1, {"y": 2, "x": 1}]}"#).expect("parses");
        assert_eq!(call_key("f", &one), call_key("f", &same));
        assert_eq!(canonical(&one), r#"{"a":[1,{"x":1,"y":2}],"b":"q"}"#);
        assert_ne!(canonical(&json!({"a": "1"})), canonical(&json!({"a": 1})));
    }

    #[test]
    fn a_denial_beats_an_approval_whichever_came_first() {
        let run = detached_run(History::default());
        let cx = run.cx();
        let args = json!({"x": 1});
        Rules::keep(cx, "f", &args, Remember::Tool, Rule::Allow).expect("keeps");
        Rules::keep(cx, "f", &args, Remember::Call, Rule::Deny).expect("keeps");
        Rules::keep(cx, "f", &args, Remember::Call, Rule::Allow).expect("keeps");
        assert_eq!(Rules::find(cx, "f", &args).expect("reads"), Some(Rule::Deny));
        assert_eq!(Rules::find(cx, "f", &json!({"x": 2})).expect("reads"), Some(Rule::Allow));
        assert_eq!(Rules::find(cx, "g", &args).expect("reads"), None);
    }
}
