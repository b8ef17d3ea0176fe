//! Tool search, through an agent as a user would build it.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use agent::{
    Agent, AssistantMessage, Block, Model, ModelRequest, ModelResponse, Result, Tool, ToolRequest,
    core::{BoxError, Message, ModelInfo, ToolSpec, ToolSpecs, model::TokenCounter},
    llm::tokens::Tiktoken,
    middleware::ToolSearch,
    tools::ArgumentSchema,
};
use serde_json::json;

use super::case::Case;

/// Maximum of tokens that the definitions of deferred tools may add to a model call.
const BAR: u64 = 2000;

/// Results of the search.
#[derive(Debug)]
pub(super) struct Search {
    tools: usize,
    /// Tokens of all definitions, of those shown before a search, and the maximum shown after one.
    tokens: [u64; 3],
    questions: usize,
    wanted: usize,
    found: usize,
}

impl Search {
    /// Searches for the tools that answer the questions, with an agent that defers the tools of
    /// these cases.
    pub(super) fn of(cases: &[Case], most_tools: usize, most_questions: usize, show: bool) -> Result<Self, BoxError> {
        let mut tools: BTreeMap<&str, &ToolSpec> = BTreeMap::new();
        // One recording has a search tool of its own.
        let usable = |tool: &&ToolSpec| tool.name != "search_tools" && ArgumentSchema::compile(tool).is_ok();
        for tool in cases.iter().flat_map(|case| &case.tools).filter(usable) {
            if tools.len() < most_tools {
                tools.entry(&*tool.name).or_insert(tool);
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let all: ToolSpecs = tools.values().map(|tool| (*tool).clone()).collect();
        let mut this = Self { tools: tools.len(), tokens: [0; 3], questions: 0, wanted: 0, found: 0 };
        let model = Searching::default();
        let deferred = ToolSearch::new().tool_set(all.iter().map(never_called));
        let agent = Agent::builder("search", model.clone()).middleware(deferred).build()?;
        let counter = Tiktoken::default();
        this.tokens[0] = counter.tools(&all);
        for case in cases {
            let mut wanted: Vec<_> = case.calls.iter().map(|call| &*call.name).collect();
            wanted.sort_unstable();
            wanted.dedup();
            let (Some(question), false) = (&case.question, wanted.is_empty()) else { continue };
            if wanted.iter().any(|name| !tools.contains_key(name)) || this.questions == most_questions {
                continue;
            }
            runtime.block_on(agent.run(question.as_str()))?;
            let [before, after] = model.shown();
            let found = wanted.iter().filter(|name| after.iter().any(|tool| *tool.name == ***name)).count();
            if show && found < wanted.len() {
                println!("  {}: {wanted:?} for {question:?}", case.id);
            }
            this.tokens[1] = this.tokens[1].max(counter.tools(&before));
            this.tokens[2] = this.tokens[2].max(counter.tools(&after));
            this.questions += 1;
            this.wanted += wanted.len();
            this.found += found;
        }
        Ok(this)
    }

    /// Returns true if definitions stay below the limit.
    pub(super) fn holds(&self) -> bool {
        self.tokens[1] < BAR
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tools, tokens: [all, before, after], questions, wanted, found } = self;
        writeln!(
            f,
            "  deferred     {tools:>6} tools of {all} tokens; shown {before} tokens, after a search at most {after}"
        )?;
        let share = *found as f64 * 100.0 / (*wanted).max(1) as f64;
        write!(
            f,
            "  searched     {questions:>6} questions for {wanted} tools, found {found} ({share:.1} %) among the first five"
        )
    }
}

/// Model that searches with the words of the question and finishes. Records the tools shown before
/// and after.
#[derive(Clone, Default)]
struct Searching(Arc<Mutex<[ToolSpecs; 2]>>);

impl Searching {
    fn shown(&self) -> [ToolSpecs; 2] {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[agent::async_trait]
impl Model for Searching {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("searching")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(ModelResponse::new(match req.messages.last() {
            Some(Message::User(question)) => {
                shown[0] = req.tools;
                let query = json!({"query": question.text()}).to_string();
                AssistantMessage::new(vec![Block::tool_call("search", "search_tools", query)])
            }
            _ => {
                shown[1] = req.tools;
                AssistantMessage::from("done")
            }
        }))
    }
}

fn never_called(tool: &ToolSpec) -> Arc<dyn Tool> {
    let run = async |_: serde_json::Value, _: ToolRequest| "";
    Arc::new(agent::tools::from_schema(&tool.name, &tool.description, tool.parameters.clone(), run))
}
