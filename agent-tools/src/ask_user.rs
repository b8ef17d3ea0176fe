//! [`AskUser`].

use agent_core::{Ask, Error, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait, tool::Effect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::schema;

/// Kind of the question.
const KIND: &str = "ask_user";

#[derive(Deserialize, JsonSchema)]
struct AskUserArgs {
    /// The questions, one to four.
    #[schemars(length(min = 1, max = 4))]
    questions: Vec<UserQuestion>,
}

/// A question as the person is shown it.
#[derive(Serialize, Deserialize, JsonSchema)]
struct UserQuestion {
    /// The question.
    question: String,
    /// Answers to choose from; without them, the person answers in words.
    #[serde(default)]
    options: Vec<String>,
    /// Lets the person choose several.
    #[serde(default)]
    multiple: bool,
}

/// Tool by which a model asks the user: `ask_user`. The run is suspended until there is an answer,
/// in this process or another.
///
/// The question belongs to the run and has the kind `ask_user`; its payload is `{"questions":
/// [{"question", "options", "multiple"}]}`. The answer is a list with one entry per question: a
/// text, which need not be one of the options, or a list of texts if several options may be chosen.
///
/// ```
/// use agent_core::Tool;
/// use agent_tools::AskUser;
///
/// assert_eq!(AskUser::new().spec().name, "ask_user");
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct AskUser {}

impl AskUser {
    /// Creates the tool.
    pub fn new() -> Self {
        Self {}
    }
}

#[async_trait]
impl Tool for AskUser {
    fn spec(&self) -> ToolSpec {
        let description = "Asks the user, and waits for the answer. Ask when you cannot go on without a decision or a fact that only the user has. \
                           The user may also answer in words that are not among the options.";
        ToolSpec::new("ask_user", description, schema::of_arguments::<AskUserArgs>())
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let args: AskUserArgs = req.parse()?;
        if let Some(bare) = args.questions.iter().find(|one| one.options.len() == 1) {
            return Err(Error::tool(format!("'{}' has one option: give two or more, or none", bare.question)));
        }
        let text = json!({"type": "string"});
        let answers: Vec<Value> =
            args.questions
                .iter()
                .map(|one| {
                    if one.multiple { json!({"anyOf": [text, {"type": "array", "items": text}]}) } else { text.clone() }
                })
                .collect();
        let many = answers.len();
        let schema = json!({"type": "array", "prefixItems": answers, "minItems": many, "maxItems": many});
        let ask = Ask::new(KIND, json!({"questions": args.questions})).schema(schema);
        let answers: Vec<Value> = req.ask_with(ask)?.parse()?;
        let lines = args.questions.iter().zip(&answers).map(|(asked, answer)| {
            let answer = match answer {
                Value::Array(chosen) => chosen.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
                other => other.as_str().unwrap_or_default().to_owned(),
            };
            format!("{}\n{answer}", asked.question)
        });
        let shown = lines.collect::<Vec<_>>().join("\n\n");
        Ok(ToolOutput::value(json!({"answers": answers})).shown_as(vec![agent_core::Part::text(shown)]))
    }
}
