//! Breakpoints, and persistence of stopped runs.
//!
//! [`Breakpoints`] and [`Snapshots`] are middlewares for debuggers, tests, and applications that
//! store checkpoints themselves.
//!
//! ```
//! use agent_middleware::{Breakpoints, breakpoints::BreakpointsConfig};
//!
//! let config: BreakpointsConfig = serde_json::from_str(r#"{"at": [{"tools": {"visit": 0, "tool": "send_mail"}}]}"#)?;
//! let breakpoints = Breakpoints::from(config);
//! # drop(breakpoints);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod snapshots;

use agent_core::{
    Ask, Error, Flow, Middleware, ModelRequest, ModelResponse, Placement, Result, RunCx, RunEnd, ToolBatch,
    ToolResults, ToolSpecs, Verdict,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use self::snapshots::Snapshots;
use crate::run_value::RunValue;

/// A point at which a run stops. Visits are counted from 0 in each run, by completed work: visit 1
/// of the model is its second call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Breakpoint {
    /// Before a model call.
    Model {
        /// Number of earlier answered calls.
        visit: u32,
    },
    /// Before the tool calls of a message.
    Tools {
        /// Number of earlier messages with completed calls.
        visit: u32,
        /// Stops only if this tool is called; for any tool if unset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
    },
}

/// Breakpoints of runs. Default: none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BreakpointsConfig {
    /// The breakpoints.
    pub at: Vec<Breakpoint>,
}

/// Stops a run before a model call or tool calls, for inspection.
///
/// The run ends as interrupted, with a question of the kind `breakpoint`; its checkpoint contains
/// its state, including the pending calls. When it is answered with `true`, the run continues past
/// this point, once: whatever happens later, it does not stop here again. It also stops at
/// breakpoints among the request's resources, which allows stepping.
///
/// # Order
///
/// Outermost, so that the step has not had any effect yet.
///
/// ```text
/// // right: the run stops with the stored history
/// builder.middleware(Breakpoints::new().before_model(1)).middleware(compaction)
/// // wrong: the step has begun, and compaction runs again when the run resumes
/// builder.middleware(compaction).middleware(Breakpoints::new().before_model(1))
/// ```
///
/// # Example
///
/// ```
/// use agent_core::RunRequest;
/// use agent_middleware::Breakpoints;
///
/// let always = Breakpoints::new().before_tool("deploy", 0);
/// let this_time = RunRequest::user("go").resource(Breakpoints::new().before_model(2));
/// # drop((always, this_time));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Breakpoints {
    config: BreakpointsConfig,
}

const VISITS: RunValue<Visits> = RunValue::new("breakpoints", "visits");

/// Number of completed turns with calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Visits {
    tools: u32,
    /// The step of the newest turn, which is counted once.
    step: u32,
}

impl Breakpoints {
    /// Creates the middleware without breakpoints.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops before a model call, after `visit` earlier ones.
    #[must_use]
    pub fn before_model(self, visit: u32) -> Self {
        self.at(Breakpoint::Model { visit })
    }

    /// Stops before the calls of a message, after those of `visit` earlier messages.
    #[must_use]
    pub fn before_tools(self, visit: u32) -> Self {
        self.at(Breakpoint::Tools { visit, tool: None })
    }

    /// Stops before the calls of a message, after those of `visit` earlier messages, if this tool
    /// is called.
    #[must_use]
    pub fn before_tool(self, tool: impl Into<String>, visit: u32) -> Self {
        self.at(Breakpoint::Tools { visit, tool: Some(tool.into()) })
    }

    fn at(mut self, place: Breakpoint) -> Self {
        self.config.at.push(place);
        self
    }

    /// Returns its own breakpoints, and those from the request.
    fn all(&self, cx: &RunCx) -> Vec<Breakpoint> {
        let of_run = cx.resources().get::<Self>().map(|given| given.config.at.clone()).unwrap_or_default();
        self.config.at.iter().cloned().chain(of_run).collect()
    }
}

/// Stops here, unless the run already continued past this point.
fn stop(cx: &RunCx, before: &str, visits: (u32, u32)) -> Result<()> {
    let payload = json!({"before": before, "visits": {"model": visits.0, "tools": visits.1}});
    let ask = Ask::new("breakpoint", payload).nonce(before).schema(json!({"const": true}));
    cx.ask_with(ask).map(drop)
}

/// Refuses breakpoints for unknown tools, which would never be reached.
fn check(places: &[Breakpoint], tools: &ToolSpecs) -> Result<()> {
    for place in places {
        if let Breakpoint::Tools { tool: Some(name), .. } = place
            && !tools.iter().any(|spec| spec.name == *name)
        {
            let known: Vec<_> = tools.iter().map(|spec| spec.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Error::config(format!("a breakpoint waits for tool '{name}'; the tools are: {known}")));
        }
    }
    Ok(())
}

impl From<BreakpointsConfig> for Breakpoints {
    fn from(config: BreakpointsConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Middleware for Breakpoints {
    fn name(&self) -> &str {
        "breakpoints"
    }

    fn placement(&self) -> Placement {
        Placement::default().outside("context_compaction")
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        VISITS.end(cx, end);
        Ok(())
    }

    async fn before_model(&self, cx: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        let (places, visit) = (self.all(cx), cx.step().saturating_sub(1));
        if visit == 0 {
            check(&places, &req.tools)?;
        }
        if places.contains(&Breakpoint::Model { visit }) {
            stop(cx, "model", (visit, VISITS.update(cx, |visits| visits.tools)?))?;
        }
        Ok(Flow::Continue)
    }

    async fn before_tools(&self, cx: &RunCx, calls: &mut ToolBatch) -> Result<()> {
        let places = self.all(cx);
        if places.is_empty() {
            return Ok(());
        }
        let now = VISITS.update(cx, |visits| visits.tools)?;
        let is_called = |tool: &String| calls.calls.iter().any(|call| *call.request.call.name == **tool);
        let is_here = |place: &Breakpoint| match place {
            Breakpoint::Tools { visit, tool } => *visit == now && tool.as_ref().is_none_or(is_called),
            Breakpoint::Model { .. } => false,
        };
        if places.iter().any(is_here) { stop(cx, "tools", (cx.step(), now)) } else { Ok(()) }
    }

    async fn after_tools(&self, cx: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        if !self.all(cx).is_empty() {
            VISITS.update(cx, |visits| {
                if visits.step != cx.step() {
                    *visits = Visits { tools: visits.tools + 1, step: cx.step() };
                }
            })?;
        }
        Ok(Verdict::Proceed)
    }
}
