//! Forms of the roles' answers, with tolerant parsers.

use agent_core::OutputFormat;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::read::{field, object_with, sections};

/// Reason why an answer could not be parsed; the role receives it once.
pub type Unreadable = String;

/// Analysis of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueryAnalysis {
    /// Short summary of the question.
    pub concise_summary: String,
    /// Skills required to answer it.
    pub required_skills: String,
    /// Tools that may help, with reasons.
    pub relevant_tools: String,
    /// Further considerations.
    pub additional_considerations: String,
}

/// Plan of the next step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NextStep {
    /// Reason why this is the best next step.
    pub justification: String,
    /// All information that the worker needs.
    pub context: String,
    /// Goal of the step.
    pub sub_goal: String,
    /// Name of the tool, as the planner wrote it.
    pub tool_name: String,
}

/// Verdict whether the results answer the query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryVerification {
    /// Assessment: complete, missing and inconsistent results.
    pub analysis: String,
    /// True if no further step is needed.
    pub stop_signal: bool,
}

impl QueryAnalysis {
    pub(crate) fn format() -> OutputFormat {
        form(
            "query_analysis",
            &[
                ("concise_summary", "What is asked, in short."),
                ("required_skills", "What one must be able to do, and why."),
                ("relevant_tools", "Tools that may help, and how."),
                ("additional_considerations", "What else matters."),
            ],
        )
    }

    /// Parses an answer: JSON, or text with the four titles, or any other text, which becomes the
    /// summary.
    pub fn read(text: &str) -> Self {
        if let Some(object) = object_with(text, &["concise_summary"]) {
            return Self {
                concise_summary: field(&object, "concise_summary"),
                required_skills: field(&object, "required_skills"),
                relevant_tools: field(&object, "relevant_tools"),
                additional_considerations: field(&object, "additional_considerations"),
            };
        }
        let titles = ["Concise Summary", "Required Skills", "Relevant Tools", "Additional Considerations"];
        match sections(text, titles) {
            [Some(concise_summary), skills, tools, considerations] => Self {
                concise_summary,
                required_skills: skills.unwrap_or_default(),
                relevant_tools: tools.unwrap_or_default(),
                additional_considerations: considerations.unwrap_or_default(),
            },
            _ => Self { concise_summary: text.trim().to_owned(), ..Self::default() },
        }
    }
}

impl std::fmt::Display for QueryAnalysis {
    /// Writes four titled sections; empty ones are omitted.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = [
            ("Concise Summary", &self.concise_summary),
            ("Required Skills", &self.required_skills),
            ("Relevant Tools", &self.relevant_tools),
            ("Additional Considerations", &self.additional_considerations),
        ];
        let mut gap = "";
        for (title, text) in all.into_iter().filter(|(_, text)| !text.is_empty()) {
            write!(f, "{gap}{title}: {text}")?;
            gap = "\n\n";
        }
        Ok(())
    }
}

impl NextStep {
    pub(crate) fn format() -> OutputFormat {
        form(
            "next_step",
            &[
                ("justification", "Why this is the best next step."),
                ("context", "All that the worker must know: values, names of files, results of earlier steps."),
                ("sub_goal", "What the step is to reach."),
                ("tool_name", "The name of one tool, exactly."),
            ],
        )
    }

    /// Parses an answer: JSON, or text with the sections Context, Sub-Goal and Tool Name; the last
    /// occurrence of each wins.
    ///
    /// # Errors
    /// A description of the missing parts.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        if let Some(object) = object_with(text, &["tool_name"]) {
            return Self {
                justification: field(&object, "justification"),
                context: field(&object, "context"),
                sub_goal: field(&object, "sub_goal"),
                tool_name: field(&object, "tool_name"),
            }
            .with_tool();
        }
        match sections(text, ["Context", "Sub-Goal", "Tool Name", "Justification"]) {
            [Some(context), Some(sub_goal), Some(tool), justification] => {
                // The text after the name is prose.
                let tool_name = tool.lines().next().unwrap_or_default().to_owned();
                Self { justification: justification.unwrap_or_default(), context, sub_goal, tool_name }.with_tool()
            }
            found => {
                let missing = ["Context", "Sub-Goal", "Tool Name"].into_iter().zip(found);
                let missing = missing.filter_map(|(label, section)| section.is_none().then_some(label));
                Err(format!("it is no JSON and has no section {}", missing.collect::<Vec<_>>().join(", ")))
            }
        }
    }

    fn with_tool(self) -> Result<Self, Unreadable> {
        if self.tool_name.trim().is_empty() { Err("it names no tool".into()) } else { Ok(self) }
    }
}

impl MemoryVerification {
    pub(crate) fn format() -> OutputFormat {
        let mut format = form("memory_verification", &[("analysis", "What is complete, missing or inconsistent.")]);
        format.schema["properties"]["stop_signal"] =
            json!({"type": "boolean", "description": "True if what is known answers the query."});
        format.schema["required"] = json!(["analysis", "stop_signal"]);
        format
    }

    /// Parses an answer: JSON, or text, in which the last line `Conclusion: STOP` or
    /// `Conclusion: CONTINUE` counts. Without either the result is to continue: one more step costs
    /// little, and a stray word is not a verdict.
    pub fn read(text: &str) -> Self {
        if let Some(object) = object_with(text, &["stop_signal"]) {
            let stop_signal = match object.get("stop_signal") {
                Some(Value::Bool(stop)) => *stop,
                Some(Value::String(word)) => ["true", "stop"].contains(&word.trim().to_lowercase().as_str()),
                _ => false,
            };
            return Self { analysis: field(&object, "analysis"), stop_signal };
        }
        let mut verdicts = text.lines().filter_map(verdict);
        Self { analysis: text.trim().to_owned(), stop_signal: verdicts.next_back().unwrap_or(false) }
    }
}

/// Parses the verdict of a conclusion line, ignoring Markdown marks.
fn verdict(line: &str) -> Option<bool> {
    let letters = |c: char| !c.is_alphabetic();
    let line = line.to_lowercase();
    let (_, said) =
        line.rsplit_once("conclusion").filter(|(_, said)| said.trim_start_matches('*').trim().starts_with(':'))?;
    match said.split(letters).find(|word| !word.is_empty())? {
        "stop" => Some(true),
        "continue" => Some(false),
        _ => None,
    }
}

/// Creates the form of an object of required texts.
pub(crate) fn form(name: &str, fields: &[(&str, &str)]) -> OutputFormat {
    let text = |(name, says): &(&str, &str)| ((*name).to_owned(), json!({"type": "string", "description": says}));
    let properties: Map<_, _> = fields.iter().map(text).collect();
    let required: Vec<_> = fields.iter().map(|(name, _)| name).collect();
    let schema =
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    OutputFormat::new(name, schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_planned_steps_the_last_counts() {
        let text =
            "Context: a\nSub-Goal: b\nTool Name: c\n\nBetter:\nContext: d\nSub-Goal: e\nTool Name: `f`\nThat is all.";
        let step = NextStep::read(text).expect("readable");
        assert_eq!((step.context.as_str(), step.sub_goal.as_str(), step.tool_name.as_str()), ("d", "e", "`f`"));
        let step = NextStep::read(r#"Sure: {"justification": "", "context": "c", "sub_goal": "g", "tool_name": "t"}"#);
        assert_eq!(step.expect("readable").tool_name, "t");
        assert_eq!(
            NextStep::read("Context: a").expect_err("no tool"),
            "it is no JSON and has no section Sub-Goal, Tool Name"
        );
        assert_eq!(NextStep::read(r#"{"tool_name": ""}"#).expect_err("no tool"), "it names no tool");
    }

    #[test]
    fn a_verdict_is_never_guessed_from_a_stray_word() {
        for text in [
            r#"{"analysis": "a", "stop_signal": true}"#,
            "**Conclusion**: STOP",
            "Conclusion: CONTINUE\nOn second thought.\n**Conclusion: STOP**",
            "conclusion:stop.",
        ] {
            assert!(MemoryVerification::read(text).stop_signal, "{text}");
        }
        for text in [
            "we should not stop yet",
            "STOP",
            "Conclusion: STOP\nConclusion: CONTINUE",
            r#"{"analysis": "stop", "stop_signal": false}"#,
            "My conclusion is that it must stop",
            "Conclusion: unstoppable",
            "",
        ] {
            assert!(!MemoryVerification::read(text).stop_signal, "{text}");
        }
    }

    #[test]
    fn an_analysis_is_read_from_json_and_titles_and_plain_text_and_shown_in_four_sections() {
        let json = r#"{"concise_summary": "s", "required_skills": "k", "relevant_tools": "t", "additional_considerations": "c"}"#;
        let shown = QueryAnalysis::read(json).to_string();
        assert_eq!(
            shown,
            "Concise Summary: s\n\nRequired Skills: k\n\nRelevant Tools: t\n\nAdditional Considerations: c"
        );
        assert_eq!(QueryAnalysis::read(&shown).to_string(), shown);
        assert_eq!(QueryAnalysis::read("just text").concise_summary, "just text");
    }
}
