//! Comparison of the result of a try with its case.

use std::collections::BTreeMap;

use agent::{ExitReason, Finished, Result, RunEnd, tools::check_value};
use regex::Regex;

use super::cases::Case;
use crate::{output::explained, run::about};

/// All that is not as the case says; nothing if the try passed.
pub(super) fn faults(case: &Case, end: &Result<RunEnd>) -> Vec<String> {
    match end {
        Ok(RunEnd::Finished(finished)) => of_finished(case, finished),
        Ok(RunEnd::Interrupted(checkpoint)) => {
            let asked: Vec<_> = checkpoint.questions.iter().map(about).collect();
            vec![format!("it waits for an answer: {}", asked.join("; "))]
        }
        Ok(other) => vec![format!("the run was {}", other.as_str())],
        Err(error) => vec![explained(error)],
    }
}

fn of_finished(case: &Case, finished: &Finished) -> Vec<String> {
    let mut faults = of_answer(case, finished.answer.trim());
    if !matches!(finished.reason, ExitReason::Text | ExitReason::Tool(_)) {
        faults.push(format!("it ended early: {}", finished.reason));
    }
    faults.extend(of_tools(case, &finished.tool_calls));
    faults
}

fn of_answer(case: &Case, answer: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if case.equals.as_ref().is_some_and(|wanted| wanted.trim() != answer) {
        faults.push(format!("the answer is another: {answer}"));
    }
    let missing = case.contains.iter().filter(|part| !answer.contains(part.as_str()));
    faults.extend(missing.map(|part| format!("'{part}' is not in the answer: {answer}")));
    if let Some(pattern) = &case.matches
        && !Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(answer))
    {
        faults.push(format!("/{pattern}/ does not fit the answer: {answer}"));
    }
    if let Some(schema) = &case.schema {
        let value = serde_json::from_str(answer).map_err(|e| format!("the answer is not JSON: {e}"));
        let checked = value.and_then(|value| check_value(schema).map_err(|e| e.to_string())?(&value));
        faults.extend(checked.err());
    }
    faults
}

fn of_tools(case: &Case, calls: &BTreeMap<String, u32>) -> Vec<String> {
    let called = |tool: &&String| calls.get(*tool).is_some_and(|times| *times > 0);
    let missing =
        case.tools.iter().filter(|tool| !called(tool)).map(|tool| format!("the tool '{tool}' was not called"));
    let forbidden = case.no_tools.iter().filter(called).map(|tool| format!("the tool '{tool}' was called"));
    missing.chain(forbidden).collect()
}
