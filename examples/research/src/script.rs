//! Models without a provider: each researcher searches for the question and quotes the best
//! passage, and the lead reports these quotations.

use std::collections::HashMap;

use agent::{
    prelude::*,
    testing::{ScriptedModel, Turn},
};
use serde_json::{Value, json};

use crate::{library::Library, team::LEAD_ROLE};

/// A scripted model for each role.
pub(crate) struct Script(HashMap<String, ScriptedModel>);

impl Script {
    /// Takes the model of a role.
    pub(crate) fn take(&mut self, role: &str) -> Result<ScriptedModel> {
        self.0.remove(role).ok_or_else(|| Error::config(format!("the script has no model for '{role}'")))
    }
}

/// Writes the script of a question about these collections.
pub(crate) async fn quoting(libraries: &[Library], question: &str) -> Result<Script> {
    let mut models = HashMap::new();
    let mut findings = Vec::new();
    for library in libraries {
        let best = library.search(question).await?.into_iter().next();
        let said = match &best {
            Some(passage) => format!("{} {}", statement(&passage.text), passage.source()),
            None => "The documents do not have the answer.".to_owned(),
        };
        let turns = [Turn::call("s1", "search_knowledge", json!({"query": question})), Turn::text(said)];
        models.insert(library.name().to_owned(), ScriptedModel::new(turns));
        findings.extend(best.map(|passage| json!({"claim": statement(&passage.text), "sources": [passage.source()]})));
    }
    let calls: Vec<(String, Value)> = (1..)
        .zip(libraries)
        .map(|(n, library)| (format!("d{n}"), json!({"agent": library.name(), "message": question})))
        .collect();
    let calls = calls.iter().map(|(id, arguments)| (id.as_str(), "delegate", arguments.clone()));
    let report =
        json!({"summary": "A script chose these passages; a model would answer from them.", "findings": findings});
    let lead = ScriptedModel::new([Turn::calls(calls), Turn::call("r1", "final_answer", report)]);
    models.insert(LEAD_ROLE.to_owned(), lead);
    Ok(Script(models))
}

/// First line of prose of a passage.
fn statement(passage: &str) -> &str {
    let is_prose = |line: &&str| line.chars().next().is_some_and(char::is_alphabetic);
    passage.lines().map(str::trim).find(is_prose).unwrap_or(passage.trim())
}
