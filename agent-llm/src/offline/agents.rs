//! Sub-agents on offer, and selection of the one that matches a question.

use std::collections::HashSet;

use agent_core::ToolSpec;
use agent_retrieval::search::names;
use serde_json::Value;

use super::{
    exchange::Done,
    params::{Params, has, name_words},
    roles::Wanted,
    terms::Terms,
    words::stems,
};
use crate::language::stem;

const MESSAGE: &[&str] = &["message", "task", "question", "prompt", "instructions", "request"];
const AGENT: &[&str] = &["agent", "subagent", "agentname", "subagentname", "assistant"];

/// Words in the description of an agent that investigates, whatever the topic.
const FINDS_OUT: &str = "answer analyse examine explore find inspect investigate look lookup read research retrieve \
    review search";

/// A sub-agent that can be called.
#[derive(Debug)]
pub(super) struct Agent<'a> {
    tool: &'a str,
    message: &'a str,
    /// Parameter that selects the agent, and the agent's key; `None` if the tool itself is the
    /// agent.
    key: Option<(&'a str, String)>,
    description: String,
}

impl Agent<'_> {
    pub(super) fn call(&self, question: &str) -> Wanted {
        let key = self.key.iter().map(|(param, key)| ((*param).to_owned(), Value::from(key.as_str())));
        Wanted::new(self.tool, key.chain([(self.message.to_owned(), question.into())]))
    }

    pub(super) fn name(&self) -> &str {
        self.key.as_ref().map_or(self.tool, |(_, key)| key)
    }

    /// Returns true if the call went to this agent.
    pub(super) fn did(&self, done: &Done) -> bool {
        done.tool == self.tool && self.key.as_ref().is_none_or(|(param, key)| done.arg(param) == Some(key))
    }

    /// Scores the agent: the question's words in its description, and whether it investigates at
    /// all.
    fn fit(&self, terms: &Terms) -> f64 {
        let about: HashSet<String> = stems(&self.description).into_iter().collect();
        let shared: f64 = terms.query().filter(|(stem, _)| about.contains(*stem)).map(|(_, weight)| weight).sum();
        let finds_out = FINDS_OUT.split_whitespace().any(|word| about.contains(&stem(word)));
        shared + if finds_out { 1.0 } else { 0.0 }
    }
}

/// Returns the agent that matches the question best, if any.
pub(super) fn fitting<'r, 'a>(agents: &'r [Agent<'a>], terms: &Terms) -> Option<&'r Agent<'a>> {
    let fits = agents.iter().map(|agent| (agent.fit(terms), agent)).filter(|(fit, _)| *fit >= 1.0);
    fits.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, agent)| agent)
}

/// Returns the part of a multi-part question that matches the agent best; else the whole question.
pub(super) fn part_for(agent: &Agent<'_>, question: &str) -> String {
    let whole = question.trim();
    let parts: Vec<_> = whole.split_inclusive(['?', ';', '\n']).map(str::trim).collect();
    let fits = parts.iter().map(|part| (agent.fit(&Terms::of(part)), *part));
    let best = fits.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.filter(|_| parts.len() > 1).map_or(whole, |(_, part)| part).to_owned()
}

/// Returns the agents behind `tool`: those listed in its description, those named in its schema, or
/// the tool itself.
pub(super) fn agents<'a>(tool: &'a ToolSpec, params: &Params<'a>) -> Vec<Agent<'a>> {
    let Some(message) = params.first_of(MESSAGE) else { return Vec::new() };
    let agent = |key, description: &str| Agent { tool: &tool.name, message, key, description: description.to_owned() };
    match params.first_of(AGENT) {
        Some(param) if params.need_only(&[message, param]) => {
            let listed: Vec<_> = tool.description.lines().filter_map(listed).collect();
            let named = named(params.schema(param));
            let keys: Vec<_> =
                if named.is_empty() { listed.iter().map(|(key, _)| (*key).to_owned()).collect() } else { named };
            let describe =
                |key: &str| listed.iter().find(|(k, _)| *k == key).map_or(&*tool.description, |(_, text)| text);
            keys.into_iter().map(|key| agent(Some((param, key.clone())), describe(&key))).collect()
        }
        None if params.need_only(&[message]) && is_agent(tool, params.description(message)) => {
            vec![agent(None, &tool.description)]
        }
        _ => Vec::new(),
    }
}

/// Returns true for a tool that describes itself as an agent, or takes a task.
fn is_agent(tool: &ToolSpec, message: &str) -> bool {
    let words: Vec<_> = [&tool.name, &tool.description].into_iter().flat_map(|text| name_words(text)).collect();
    let is_agent = has(&["agent", "agents", "assistant", "delegate", "delegates", "subagent"], &words);
    (is_agent || has(&["task"], &name_words(message))) && !has(&["user", "human"], &words)
}

/// Parses `- **key**: description`.
fn listed(line: &str) -> Option<(&str, &str)> {
    let (key, description) = line.trim().strip_prefix(['-', '*'])?.split_once(':')?;
    let key = key.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '`' | '"'));
    let is_key = !key.is_empty() && names(key).count() > 0 && !key.contains(char::is_whitespace);
    is_key.then(|| (key, description.trim_start_matches('*').trim()))
}

fn named(schema: Option<&Value>) -> Vec<String> {
    let keys = schema.and_then(|schema| schema.get("enum")).and_then(Value::as_array);
    keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::roles::Roles;
    use super::*;

    fn delegate(list: &str) -> ToolSpec {
        let params = json!({"properties": {"agent": {"type": "string"}, "message": {"type": "string"}}, "required": ["agent", "message"]});
        ToolSpec::new("delegate", format!("Hands a task to a sub-agent:\n{list}"), params)
    }

    fn ask(tools: &[ToolSpec], question: &str) -> Option<String> {
        fitting(&Roles::of(tools).agents, &Terms::of(question)).map(|agent| agent.name().to_owned())
    }

    #[test]
    fn the_agent_whose_description_fits_is_asked() {
        let tools = [delegate(
            "- **historian**: Knows the changelog and releases.\n- **poet**: Rhymes.\n- **scout**: Explores the workspace.",
        )];
        assert_eq!(ask(&tools, "Which releases had breaking changes?").as_deref(), Some("historian"));
        assert_eq!(ask(&tools, "Where are retries counted?").as_deref(), Some("scout"));
        assert_eq!(ask(&[delegate("- **poet**: Rhymes.")], "Where are retries counted?"), None);
    }

    #[test]
    fn a_call_names_the_agent_and_hands_over_the_part_that_fits_it() {
        let tools = [delegate("- **historian**: Knows the changelog and releases.")];
        let roles = Roles::of(&tools);
        let part = part_for(&roles.agents[0], "Where is the parser? Which releases changed it?");
        let wanted = roles.agents[0].call(&part);
        assert_eq!(wanted.args, json!({"agent": "historian", "message": "Which releases changed it?"}));
    }

    #[test]
    fn a_tool_that_is_an_agent_itself_is_one() {
        let message = |about| json!({"properties": {"message": {"description": about}}, "required": ["message"]});
        for (description, about) in [("A sub-agent that searches.", ""), ("Searches.", "The task, complete in itself.")]
        {
            let tools = [ToolSpec::new("researcher", description, message(about))];
            assert_eq!(ask(&tools, "Where are retries counted?").as_deref(), Some("researcher"));
        }
        let tools = [ToolSpec::new("ask_user", "Searches for an answer with the user.", message("The task."))];
        assert_eq!(ask(&tools, "Where are retries counted?"), None);
    }
}
