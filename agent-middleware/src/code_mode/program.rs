//! Persisted state of running programs: their sources, once, and a descriptor of each call's
//! result.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{GlobalStorage, Key, Message, Result, RunCx, ToolCall, ToolMessage, ToolOutput, tool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    functions::Function,
    history::Trace,
    interpreter::{Call, CallResult, Job},
};
use crate::digest::digest;

/// Running programs, by the ids of their calls.
pub(super) type Programs = BTreeMap<String, Program>;

const UNDER_WAY: Key<Programs> = Key::new("under_way");
const TOLD: Key<Told> = Key::new("told");

/// A running program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Program {
    /// The run in which it began.
    pub(super) run: Arc<str>,
    pub(super) code: String,
    /// The tools that it can call: those that were offered when it began.
    pub(super) functions: Vec<Function>,
}

/// Describes how to reconstruct the result of a call from its text in the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Told {
    tool: String,
    /// Digest of the text, to detect that it was replaced.
    digest: String,
    is_error: bool,
    form: Form,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    /// The text is the value.
    Text,
    /// The text is JSON: the value, or an object of its fields without these.
    Json(Map<String, Value>),
    /// The text is incomplete; this is the value.
    Value(Value),
}

/// State of an agent's running programs, in the storage that the hierarchy shares.
///
/// The state is keyed by agent, so that a fork resumes a program, and the next run sees one that an
/// earlier run left. Each step writes only its own values.
pub(super) struct Kept(GlobalStorage);

impl Kept {
    pub(super) fn of(cx: &RunCx) -> Self {
        Self(cx.globals().scope("code_mode").scope(&cx.ids().agent_id))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn programs(&self) -> Result<Programs> {
        Ok(self.0.get(&UNDER_WAY)?.unwrap_or_default())
    }

    /// Adds a program. Within a tool call, it is persisted with that call's result.
    pub(super) fn begin(&self, id: &str, program: Program) -> Result<()> {
        let id = id.to_owned();
        let added = self.0.update(&UNDER_WAY, move |programs| {
            let mut programs = programs.unwrap_or_default();
            programs.insert(id.clone(), program.clone());
            programs
        });
        added.map(drop)
    }

    /// Records the result of a program's call.
    pub(super) fn note(&self, call: &tool::CallResult) -> Result<()> {
        self.told(&call.call_id).set(&TOLD, &Told::of(&call.name, &call.output))
    }

    /// True if the result of the call was recorded.
    pub(super) fn is_told(&self, call_id: &str) -> bool {
        !self.told(call_id).is_empty()
    }

    /// Describes the calls that a program made: from the records, since the history may have lost
    /// them, and from the history, since calls that were interrupted have no record.
    pub(super) fn done(&self, id: &str, trace: &Trace<'_>) -> String {
        let is_kept = !self.is_empty();
        let name = |at| {
            let noted = self.told(&call_id(id, at)).get(&TOLD).ok().flatten().map(|told| told.tool);
            noted.or_else(|| match &*trace.calls.get(at)?.0.name {
                name if is_kept => Some(format!("{name} (which may not have happened)")),
                name => Some(name.to_owned()),
            })
        };
        let done: Vec<_> = (0..).map_while(name).collect();
        if done.is_empty() { "It made no call.".into() } else { format!("It had called {}.", done.join(", ")) }
    }

    /// Returns the job to run; `None` if a result that the program needs is no longer in the
    /// history.
    pub(super) fn job(&self, id: &str, program: &Program, trace: &Trace<'_>) -> Option<Job> {
        if self.is_told(&call_id(id, trace.calls.len())) {
            return None;
        }
        let known = trace.calls.iter().map(|(call, result)| {
            let told = self.told(&call.id).get(&TOLD).ok()??;
            let function = program.functions.iter().find(|function| function.tool == *call.name)?;
            let call = Call { tool: function.tool.clone(), arguments: call.arguments.clone() };
            Some((call, told.result(*result)?))
        });
        let known = known.collect::<Option<_>>()?;
        Some(Job { code: program.code.clone(), functions: program.functions.clone(), known, check: None })
    }

    /// Removes all state.
    pub(super) fn clear(&self) {
        let told = self.0.scope("results");
        for name in told.snapshot().into_keys() {
            if let Some((call_id, _)) = name.rsplit_once('/') {
                told.scope(&call_id.replace("~1", "/").replace("~0", "~")).remove(&TOLD);
            }
        }
        self.0.remove(&UNDER_WAY);
    }

    fn told(&self, call_id: &str) -> GlobalStorage {
        self.0.scope("results").scope(call_id)
    }
}

impl Told {
    fn of(tool: &str, output: &ToolOutput) -> Self {
        let text = output.to_text();
        let form = match output.as_value() {
            None => Form::Text,
            Some(Value::String(value)) if *value == text => Form::Text,
            Some(value) => match serde_json::from_str(&text) {
                Ok(shown) => beside(&shown, value).map_or_else(|| Form::Value(value.clone()), Form::Json),
                Err(_) => Form::Value(value.clone()),
            },
        };
        Self { tool: tool.to_owned(), digest: digest([text.as_str()]), is_error: output.is_error(), form }
    }

    /// Returns the result; `None` if the history no longer contains it.
    fn result(self, found: Option<&ToolMessage>) -> Option<CallResult> {
        let text = Message::Tool(found?.clone()).text();
        if digest([text.as_str()]) != self.digest {
            return None;
        }
        Some(match self.form {
            _ if self.is_error => Err(text),
            Form::Value(value) => Ok(value),
            Form::Json(beside) => {
                let mut value: Value = serde_json::from_str(&text).ok()?;
                if let Value::Object(fields) = &mut value {
                    fields.extend(beside);
                }
                Ok(value)
            }
            Form::Text => Ok(text.into()),
        })
    }
}

/// Returns the fields of a value that its shown form omits, such as those for people; `None` if the
/// rest differs.
fn beside(shown: &Value, value: &Value) -> Option<Map<String, Value>> {
    let (Value::Object(some), Value::Object(all)) = (shown, value) else { return (shown == value).then(Map::new) };
    let (in_both, beside): (Map<_, _>, Map<_, _>) =
        all.clone().into_iter().partition(|(name, _)| some.contains_key(name));
    (in_both == *some).then_some(beside)
}

/// Returns the id of a program's call; `at` starts at 0.
pub(super) fn call_id(id: &str, at: usize) -> String {
    format!("{id}.{}", at + 1)
}

/// Returns the calls that a program needs next, in the form of model calls.
pub(super) fn calls(id: &str, made: usize, calls: Vec<Call>) -> impl Iterator<Item = ToolCall> {
    (made..).zip(calls).map(move |(at, call)| ToolCall {
        id: call_id(id, at).into(),
        name: call.tool.into(),
        arguments: call.arguments,
        raw: None,
    })
}
