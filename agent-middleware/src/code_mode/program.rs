//! What a run keeps of the programs that are under way.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{AssistantMessage, Block, ToolCall, ToolMessage, ToolOutput};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    functions::Function,
    interpreter::{Call, CallResult, Job},
};
use crate::{digest::digest, run_value::RunValue};

/// The answer whose programs are under way, if there is one.
pub(super) const UNDER_WAY: RunValue<Option<Answer>> = RunValue::new("code_mode", "under_way");

/// An answer of the model with programs that call tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Answer {
    /// The step in which it was given.
    pub(super) step: u32,
    /// As the model said it.
    pub(super) message: AssistantMessage,
    /// The calls of the message that took its place, by their ids.
    pub(super) first: Vec<Arc<str>>,
    pub(super) programs: Vec<Program>,
}

/// A program under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Program {
    /// The id of the call that it came with.
    pub(super) id: Arc<str>,
    pub(super) code: String,
    /// The tools that it can call: those that there were when it began.
    pub(super) functions: Vec<Function>,
    pub(super) calls: Vec<Made>,
}

/// A call that a program made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) call: Call,
    /// What came of it; none yet if it is being made.
    pub(super) told: Option<Told>,
}

/// How the result of a call is had from what the history has of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Told {
    /// Of the text, so that another in its place is noticed.
    digest: String,
    is_error: bool,
    form: Form,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    /// The text is the value.
    Text,
    /// The text is the value's JSON.
    Json,
    /// The text does not say it all.
    Value(Value),
}

impl Told {
    fn of(output: &ToolOutput) -> Self {
        let text = output.to_text();
        let form = match output.as_value() {
            None => Form::Text,
            Some(Value::String(value)) if *value == text => Form::Text,
            Some(value) if serde_json::from_str::<Value>(&text).is_ok_and(|read| read == *value) => Form::Json,
            Some(value) => Form::Value(value.clone()),
        };
        Self { digest: digest([text.as_str()]), is_error: output.is_error(), form }
    }

    /// The result; none if the history does not have it any more.
    fn result(&self, found: Option<&ToolMessage>) -> Option<CallResult> {
        if let (Form::Value(value), false) = (&self.form, self.is_error) {
            return Some(Ok(value.clone()));
        }
        let text = agent_core::Message::Tool(found?.clone()).text();
        if digest([text.as_str()]) != self.digest {
            return None;
        }
        Some(match &self.form {
            _ if self.is_error => Err(text),
            Form::Json => Ok(serde_json::from_str(&text).ok()?),
            Form::Text | Form::Value(_) => Ok(text.into()),
        })
    }
}

impl Answer {
    /// The program whose call has this id, and which of its calls it is.
    fn find(&mut self, id: &str) -> Option<&mut Made> {
        self.programs.iter_mut().find_map(|program| {
            let number: usize = id.strip_prefix(&*program.id)?.strip_prefix('.')?.parse().ok()?;
            program.calls.get_mut(number.checked_sub(1)?)
        })
    }

    /// Notes what came of a call, if a program made it.
    pub(super) fn note(&mut self, id: &str, output: &ToolOutput) {
        if let Some(made) = self.find(id) {
            made.told = Some(Told::of(output));
        }
    }

    /// True for the call of a program.
    pub(super) fn made(&self, id: &str) -> bool {
        let number = |program: &Program| id.strip_prefix(&*program.id)?.strip_prefix('.')?.parse::<usize>().ok();
        self.programs.iter().any(|program| number(program).is_some_and(|n| (1..=program.calls.len()).contains(&n)))
    }
}

impl Program {
    /// A program that made no call yet.
    pub(super) fn new(id: Arc<str>, job: Job) -> Self {
        Self { id, code: job.code, functions: job.functions, calls: Vec::new() }
    }

    /// What is to be run; none if a result that it needs is not among those that were `found`.
    pub(super) fn job(&self, found: &BTreeMap<&str, &ToolMessage>) -> Option<Job> {
        let told = self.calls.iter().enumerate().map_while(|(at, made)| Some((at, made, made.told.as_ref()?)));
        let known = told.map(|(at, made, told)| {
            let result = told.result(found.get(&*self.call_id(at)).copied())?;
            Some((made.call.clone(), result))
        });
        let known = known.collect::<Option<_>>()?;
        Some(Job { code: self.code.clone(), functions: self.functions.clone(), known })
    }

    /// Takes on the calls that it needs next, and gives them as the model would have made them.
    pub(super) fn take_on(&mut self, calls: Vec<Call>) -> Vec<Block> {
        let known = self.calls.iter().take_while(|made| made.told.is_some()).count();
        self.calls.truncate(known);
        self.calls.extend(calls.into_iter().map(|call| Made { call, told: None }));
        let new = self.calls.iter().enumerate().skip(known);
        let blocks = new.map(|(at, Made { call, .. })| {
            Block::ToolCall(ToolCall {
                id: self.call_id(at),
                name: call.tool.as_str().into(),
                arguments: call.arguments.clone(),
                raw: None,
            })
        });
        blocks.collect()
    }

    /// What it did, in words.
    /// True if a call of it has a result.
    pub(super) fn has_called(&self) -> bool {
        self.calls.iter().any(|made| made.told.is_some())
    }

    pub(super) fn done(&self) -> String {
        let done: Vec<_> = self.calls.iter().filter(|made| made.told.is_some()).map(|made| &*made.call.tool).collect();
        if done.is_empty() { "It made no call.".into() } else { format!("It had called {}.", done.join(", ")) }
    }

    fn call_id(&self, at: usize) -> Arc<str> {
        format!("{}.{}", self.id, at + 1).into()
    }
}
