//! [`Scope`]: the part of a run that code runs in.

use std::{fmt, sync::Arc};

use super::RunCx;
use crate::{
    error::{Error, ErrorKind, Result},
    log::ChildOwner,
    state::ChildKey,
    storage::CallStorage,
};

/// A hook of a middleware, or another part of a run that is entered again when the run resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hook {
    /// [`before_agent`](crate::Middleware::before_agent).
    BeforeAgent,
    /// [`before_model`](crate::Middleware::before_model).
    BeforeModel,
    /// [`wrap_model_call`](crate::Middleware::wrap_model_call), and layers around the model.
    WrapModel,
    /// The model itself.
    Model,
    /// [`after_model`](crate::Middleware::after_model).
    AfterModel,
    /// [`on_model_error`](crate::Middleware::on_model_error).
    OnModelError,
    /// [`before_tools`](crate::Middleware::before_tools).
    BeforeTools,
    /// [`before_tool`](crate::Middleware::before_tool).
    BeforeTool,
    /// [`wrap_tool_call`](crate::Middleware::wrap_tool_call), and layers around a tool.
    WrapTool,
    /// [`after_tool`](crate::Middleware::after_tool).
    AfterTool,
    /// [`on_tool_error`](crate::Middleware::on_tool_error).
    OnToolError,
    /// [`after_tools`](crate::Middleware::after_tools).
    AfterTools,
    /// [`on_exit`](crate::Middleware::on_exit).
    OnExit,
    /// [`after_agent`](crate::Middleware::after_agent).
    AfterAgent,
}

/// The part of a run that code runs in. It owns the sub-agents, the decisions and the waits of that
/// code.
#[derive(Clone, Debug, Default)]
pub(crate) enum Scope {
    /// No part in particular, such as a background task.
    #[default]
    Run,
    /// A hook of the middleware at this position in the stack; a hook around a tool call has the id
    /// of the call.
    Hook { hook: Hook, at: u16, call: Option<Arc<str>> },
    /// The body of a tool call.
    Call { id: Arc<str>, storage: Arc<CallStorage> },
}

impl Scope {
    /// The call that this is a part of.
    pub(crate) fn call(&self) -> Option<&Arc<str>> {
        match self {
            Self::Run => None,
            Self::Hook { call, .. } => call.as_ref(),
            Self::Call { id, .. } => Some(id),
        }
    }

    /// The storage of the tool call whose body this is.
    pub(crate) fn storage(&self) -> Option<&CallStorage> {
        match self {
            Self::Call { storage, .. } => Some(storage),
            _ => None,
        }
    }

    /// The hook around a tool call that this is.
    fn hook_of_call(&self) -> Option<String> {
        match self {
            Self::Hook { hook, at, call: Some(_) } => Some(format!("{hook}-{at}")),
            _ => None,
        }
    }

    /// The position in the run, such as `before_model-0`.
    pub(crate) fn position(&self) -> String {
        match self {
            Self::Run => "run".to_owned(),
            Self::Hook { hook, at, .. } => format!("{hook}-{at}"),
            Self::Call { .. } => "tool".to_owned(),
        }
    }

    /// The name of a decision or a wait. Calls of one message run side by side, so their names hold
    /// the call.
    pub(crate) fn name(&self, name: &str) -> String {
        match (self.call(), self.hook_of_call()) {
            (Some(call), Some(hook)) => format!("{call}/{hook}/{name}"),
            (Some(call), None) => format!("{call}/{name}"),
            (None, _) => name.to_owned(),
        }
    }
}

impl RunCx {
    /// The same run, seen by a hook of the middleware at the position `at`, around the call `call`.
    pub(crate) fn in_hook(&self, hook: Hook, at: usize, call: Option<&Arc<str>>) -> Self {
        let at = u16::try_from(at).unwrap_or(u16::MAX);
        Self(self.0.clone(), Scope::Hook { hook, at, call: call.cloned() }, self.2)
    }

    /// The owner of the sub-agents that code in this scope starts, as part of the call `call` if
    /// the scope names none.
    pub(crate) fn child_owner(&self, call: Option<&Arc<str>>) -> ChildOwner {
        let step = self.scope_step();
        let (call_id, hook) = match (&self.1, self.1.call().or(call)) {
            (scope, Some(call)) => (call.clone(), scope.hook_of_call().map(Into::into)),
            (Scope::Hook { hook, at, .. }, None) => (format!("step-{step}/{hook}-{at}").into(), None),
            (_, None) => (format!("step-{step}/run").into(), None),
        };
        let is_call = self.1.call().or(call).is_some();
        ChildOwner { key: ChildKey { call_id, hook, key: String::new(), n: 0 }, is_call }
    }

    /// Fails in `after_agent`, which is not entered again: what it starts cannot wait for an
    /// answer.
    ///
    /// # Errors
    /// [`ErrorKind::Middleware`] with `what`, in that hook.
    pub(crate) fn may_wait(&self, what: &str) -> Result<()> {
        match &self.1 {
            Scope::Hook { hook: hook @ Hook::AfterAgent, .. } => Err(Error::new(
                ErrorKind::Middleware,
                format!("{what} in {hook}, where the run is over: call it in an earlier hook, such as on_exit"),
            )),
            _ => Ok(()),
        }
    }

    /// The step that a hook belongs to: 0 for what holds for the whole run.
    pub(crate) fn scope_step(&self) -> u32 {
        match self.has_entered() {
            true => self.step(),
            false => 0,
        }
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeforeAgent => "before_agent",
            Self::BeforeModel => "before_model",
            Self::WrapModel => "wrap_model_call",
            Self::Model => "model",
            Self::AfterModel => "after_model",
            Self::OnModelError => "on_model_error",
            Self::BeforeTools => "before_tools",
            Self::BeforeTool => "before_tool",
            Self::WrapTool => "wrap_tool_call",
            Self::AfterTool => "after_tool",
            Self::OnToolError => "on_tool_error",
            Self::AfterTools => "after_tools",
            Self::OnExit => "on_exit",
            Self::AfterAgent => "after_agent",
        })
    }
}
