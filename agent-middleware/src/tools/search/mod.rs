//! [`ToolSearch`]: tools that a model searches for on demand.

mod config;
mod tool;
mod words;

use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{
    Flow, Middleware, ModelRequest, ModelResponse, PerRun, Placement, Result, RunCx, RunEnd, Tool, ToolBatch,
    ToolChoice, ToolOutput, ToolSpecs,
};
use async_trait::async_trait;

pub use self::config::ToolSearchConfig;
use self::tool::SearchTool;
use crate::{permissions::wildcard::any_fits, run_value::RunValue};

/// Tools that a run has found, in the order in which it found them.
const LOADED: RunValue<Vec<String>> = RunValue::new("tool_search", "loaded");

/// Hides tools from the model until it searches for them: an agent with a hundred tools then shows
/// the model only a few, and one more with which it searches the others.
///
/// The model calls `search_tools` with a few words; a word with the prefix `+` is required. The
/// best matches are loaded, ranked by [Okapi BM25](agent_retrieval::search::Bm25): a word of a tool's
/// name has the highest weight, then one of its [hint](Self::hint), then one of its description and
/// of its parameters, and rare words weigh more than common ones; `HTTPClient` has the words `http`
/// and `client`. Loaded tools are offered from the next model call on, after the existing tools, so
/// that as much of the provider's cache as possible remains valid. A call of a tool that was not
/// loaded is answered with instructions on how to load it.
///
/// The loaded tools belong to the run. They survive a pause and a restart, and no other run sees
/// them. A run that offers [only some tools](agent_core::RunRequest::tools_named) searches among
/// those; if the search tool is not among them, they are all offered at once. The same applies if
/// fewer tools are deferred than the [threshold](Self::threshold), and then the search tool is not
/// offered.
///
/// # Order
///
/// Outside a [`ToolSelector`](crate::ToolSelector), which must always include the search tool.
///
/// ```text
/// // right: the cache mark is on a tool that the model is shown
/// builder.middleware(ToolSearch::new().defer("jira_*")).middleware(PromptCaching::new())
/// // wrong: the cache mark is on a tool that is hidden afterwards
/// builder.middleware(PromptCaching::new()).middleware(ToolSearch::new().defer("jira_*"))
/// ```
///
/// # Example
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::Agent;
/// use agent_middleware::ToolSearch;
/// use serde_json::json;
/// # let tool = |name: &str| {
/// #     let run = async |_: serde_json::Value, _: agent_core::ToolRequest| "done";
/// #     agent_tools::from_schema(name, "", json!({"type": "object"}), run)
/// # };
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("starts").block_on(async {
/// let model = ScriptedModel::new([
///     Turn::call("c1", "search_tools", json!({"query": "bug report"})),
///     Turn::call("c2", "jira_create", json!({})),
///     Turn::text("There is a ticket now."),
/// ]);
/// let agent = Agent::builder("office", model.clone())
///     .tool(tool("clock"))
///     .tool(tool("jira_create"))
///     .tool(tool("jira_close"))
///     .middleware(ToolSearch::new().defer("jira_*").hint("jira_create", "bug report"))
///     .build()?;
/// agent.run("It rains in.").await?;
/// assert_eq!(model.requests()[0].tools, ["clock", "search_tools"]);
/// assert_eq!(model.requests()[1].tools, ["clock", "search_tools", "jira_create"]);
/// # Ok::<(), agent_core::Error>(())
/// # }).expect("runs");
/// ```
#[derive(Default)]
pub struct ToolSearch {
    config: Arc<ToolSearchConfig>,
    /// Tools added by this middleware.
    own: Vec<Arc<dyn Tool>>,
    views: PerRun<Mutex<Option<View>>>,
}

/// The last view of a set of tools; while nothing changes, its cached wire format remains valid.
struct View {
    offered: ToolSpecs,
    loaded: Vec<String>,
    shown: ToolSpecs,
}

impl ToolSearch {
    /// Creates the middleware without deferred tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Defers the tools with this name; `*` matches any characters.
    #[must_use]
    pub fn defer(mut self, name: impl Into<String>) -> Self {
        self.edit().tools.insert(name.into());
        self
    }

    /// Adds a deferred tool to the agent.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.tool_set([Arc::new(tool) as Arc<dyn Tool>])
    }

    /// Adds deferred tools to the agent.
    #[must_use]
    pub fn tool_set(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        for tool in tools {
            self.edit().tools.insert(tool.spec().name);
            self.own.push(tool);
        }
        self
    }

    /// Sets search keywords of a tool, in addition to its name and description.
    #[must_use]
    pub fn hint(mut self, tool: impl Into<String>, words: impl Into<String>) -> Self {
        self.edit().hints.insert(tool.into(), words.into());
        self
    }

    /// Sets the minimum number of deferred tools for any to be hidden.
    #[must_use]
    pub fn threshold(mut self, tools: usize) -> Self {
        self.edit().threshold = tools;
        self
    }

    /// Sets the maximum number of tools that one search loads.
    #[must_use]
    pub fn max_results(mut self, most: usize) -> Self {
        self.edit().max_results = most;
        self
    }

    /// Sets the name of the search tool.
    #[must_use]
    pub fn search_tool(mut self, name: impl Into<String>) -> Self {
        self.edit().search_tool = name.into();
        self
    }

    fn edit(&mut self) -> &mut ToolSearchConfig {
        Arc::make_mut(&mut self.config)
    }

    /// Returns the tools to show to the model, among those that the run offers.
    fn show(&self, cx: &RunCx, offered: &ToolSpecs, loaded: Vec<String>) -> ToolSpecs {
        let view = self.views.of(cx, Mutex::default);
        let mut view = view.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = &*view
            && view.offered.as_ptr() == offered.as_ptr()
            && view.loaded == loaded
        {
            return view.shown.clone();
        }
        let deferred = self.config.deferred(offered);
        let needless = |name: &str| deferred.is_empty() && name == self.config.search_tool;
        let hidden = |name: &str| deferred.iter().any(|tool| tool.name == name);
        let always = offered.iter().filter(|tool| !needless(&tool.name) && !hidden(&tool.name));
        let found = loaded.iter().filter_map(|name| deferred.iter().find(|tool| tool.name == *name).copied());
        let shown: ToolSpecs = always.chain(found).cloned().collect();
        *view = Some(View { offered: offered.clone(), loaded, shown: shown.clone() });
        shown
    }
}

impl From<ToolSearchConfig> for ToolSearch {
    fn from(config: ToolSearchConfig) -> Self {
        Self { config: Arc::new(config), ..Self::default() }
    }
}

#[async_trait]
impl Middleware for ToolSearch {
    fn name(&self) -> &str {
        "tool_search"
    }

    fn placement(&self) -> Placement {
        Placement::default().outside("tool_selector").outside("prompt_caching").unique()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let search = || Arc::new(SearchTool(self.config.clone())) as Arc<dyn Tool>;
        let needed = (!self.config.tools.is_empty()).then(search);
        self.own.iter().cloned().chain(needed).collect()
    }

    async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        if self.config.tools.is_empty() {
            return Ok(Flow::Continue);
        }
        let forced = match &req.params.tool_choice {
            Some(ToolChoice::Tool(name)) => Some(name),
            _ => None,
        };
        let forced = forced.filter(|name| any_fits(&self.config.tools, name));
        let loaded = LOADED.update(cx, |loaded| {
            // a forced tool must be shown
            loaded.extend(forced.filter(|name| !loaded.contains(name)).cloned());
            loaded.clone()
        })?;
        req.tools = self.show(cx, &req.tools, loaded);
        Ok(Flow::Continue)
    }

    async fn before_tools(&self, cx: &RunCx, batch: &mut ToolBatch) -> Result<()> {
        if self.config.tools.is_empty() {
            return Ok(());
        }
        let loaded = LOADED.update(cx, |loaded| loaded.clone())?;
        for call in batch.calls.iter_mut().filter(|call| call.answer.is_none()) {
            let name = call.request.call.name.clone();
            let deferred = self.config.deferred(&call.request.offered);
            if deferred.iter().any(|tool| *tool.name == *name) && !loaded.iter().any(|known| **known == *name) {
                let search = &self.config.search_tool;
                call.answer(ToolOutput::error(format!("Tool '{name}' is not loaded: find it with '{search}' first.")));
            }
        }
        Ok(())
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        self.views.end(cx);
        LOADED.end(cx, end);
        Ok(())
    }
}

impl std::fmt::Debug for ToolSearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolSearch")
            .field("config", &self.config)
            .field("own", &self.own.len())
            .field("views", &self.views)
            .finish()
    }
}
