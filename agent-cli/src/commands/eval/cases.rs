//! The cases of an evaluation, as a file has them.

use std::{collections::BTreeMap, fs, path::Path};

use agent::{Budget, Caps, Error, Result, llm::Catalogue, tools::check_value};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use crate::output::cannot;

/// A prompt, and the expectations of the result. Omitted expectations are not checked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// Unique name of the case.
    pub(super) name: String,
    /// Prompt of the user.
    pub(super) input: String,
    /// Inputs of the agent's prompts.
    #[serde(default)]
    pub(super) inputs: BTreeMap<String, Value>,
    /// The whole answer, apart from the space around it.
    pub(super) equals: Option<String>,
    /// Texts that the answer has in it.
    #[serde(default)]
    pub(super) contains: Vec<String>,
    /// A regular expression that fits somewhere in the answer.
    pub(super) matches: Option<String>,
    /// The JSON Schema of the answer, which is JSON then.
    pub(super) schema: Option<Value>,
    /// Criteria for a model that judges the answer.
    pub(super) judge: Option<String>,
    /// Tools that the agent must call.
    #[serde(default)]
    pub(super) tools: Vec<String>,
    /// Tools that it must not call.
    #[serde(default)]
    pub(super) no_tools: Vec<String>,
    /// Budget.
    #[serde(default)]
    budget: CaseBudget,
}

/// Budget of one try of a case.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CaseBudget {
    tokens: Option<u64>,
    cost_usd: Option<f64>,
    model_calls: Option<u64>,
    tool_calls: Option<u64>,
}

impl Case {
    /// Returns the budget of a try; `None` if nothing is limited.
    ///
    /// # Errors
    /// A limit that cannot be kept.
    pub(super) fn budget(&self) -> Result<Option<Budget>> {
        let CaseBudget { tokens, cost_usd, model_calls, tool_calls } = self.budget;
        if tokens.is_none() && cost_usd.is_none() && model_calls.is_none() && tool_calls.is_none() {
            return Ok(None);
        }
        let mut caps = Caps::default();
        (caps.tokens, caps.model_calls, caps.tool_calls) = (tokens, model_calls, tool_calls);
        let budget = match cost_usd {
            Some(dollars) => {
                Budget::builder().caps(caps.cost((dollars * 1e6).round() as u64)).prices(Catalogue::builtin())
            }
            None => Budget::builder().caps(caps),
        };
        budget.build().map(Some)
    }

    /// Checks the case itself, before any model call.
    fn check(&self) -> Result<()> {
        let of_case = |why: String| Error::config(format!("case '{}': {why}", self.name));
        if let Some(pattern) = &self.matches {
            Regex::new(pattern).map_err(|e| of_case(e.to_string()))?;
        }
        if let Some(schema) = &self.schema {
            check_value(schema).map(drop).map_err(|e| of_case(e.message().to_owned()))?;
        }
        self.budget().map(drop).map_err(|e| of_case(e.message().to_owned()))
    }
}

/// The cases of a file: a list in YAML or JSON, or, of `.jsonl`, one a line.
///
/// # Errors
/// What cannot be read, and the first case that is wrong.
pub(super) fn read(path: &Path) -> Result<Vec<Case>> {
    let wrong = |why: String| Error::config(format!("{}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|e| cannot(path.display(), e))?;
    let cases: Vec<Case> = match path.extension().and_then(|ending| ending.to_str()) {
        Some("jsonl" | "ndjson") => {
            let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            let read = |(at, line): (usize, &str)| {
                serde_json::from_str(line).map_err(|e| wrong(format!("line {}: {e}", at + 1)))
            };
            lines.map(read).collect::<Result<_>>()?
        }
        _ => {
            // As in agents' files, nothing but true and false is a boolean.
            let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
            serde_saphyr::from_str_with_options(&text, options).map_err(|e| wrong(e.to_string()))?
        }
    };
    if cases.is_empty() {
        return Err(wrong("there is no case in it".to_owned()));
    }
    for (at, case) in cases.iter().enumerate() {
        case.check().map_err(|e| wrong(e.message().to_owned()))?;
        if cases[..at].iter().any(|other| other.name == case.name) {
            return Err(wrong(format!("two cases are called '{}'", case.name)));
        }
    }
    Ok(cases)
}
