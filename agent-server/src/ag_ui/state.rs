//! State shared between an agent and its front ends.

use agent::{EventKind, Middleware, Result, RunCx, RunEnd, Verdict, async_trait, tool::ToolResults};
use serde_json::{Map, Value};

use super::STATE;
use crate::client_tools::ClientState;

/// Middleware that shares values of the run's state with front ends: it emits every change, and
/// takes initial values from the front end. Front ends neither see nor set keys that are not named
/// here.
///
/// ```
/// use agent::{Agent, StateField, StateSchema, testing::{ScriptedModel, Turn}};
/// use agent_server::ag_ui::SharedState;
///
/// let agent = Agent::builder("planner", ScriptedModel::new([Turn::text("Done.")]))
///     .state(StateSchema::default().key("plan", StateField::of::<Vec<String>>()))
///     .middleware(SharedState::of(["plan"]))
///     .build()?;
/// # let _ = agent;
/// # Ok::<(), agent::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SharedState(Vec<String>);

impl SharedState {
    /// Shares the values under these keys of the agent's state.
    pub fn of(keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(keys.into_iter().map(Into::into).collect())
    }

    fn tell(&self, cx: &RunCx) {
        let value = |key: &String| Some((key.clone(), cx.state().get_value(key)?));
        let values: Map<_, _> = self.0.iter().filter_map(value).collect();
        cx.emit(EventKind::Custom { name: STATE.to_owned(), value: Value::Object(values) });
    }
}

#[async_trait]
impl Middleware for SharedState {
    fn name(&self) -> &str {
        "shared_state"
    }

    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        if let Ok(given) = cx.resources().get::<ClientState>() {
            for key in &self.0 {
                if let Some(value) = given.0.get(key).filter(|_| cx.state().schema().has(key)) {
                    cx.state().set_value(key, value.clone(), None)?;
                }
            }
        }
        self.tell(cx);
        Ok(())
    }

    async fn after_tools(&self, cx: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        self.tell(cx);
        Ok(Verdict::Proceed)
    }

    async fn after_agent(&self, cx: &RunCx, _: &mut Result<RunEnd>) -> Result<()> {
        self.tell(cx);
        Ok(())
    }
}
