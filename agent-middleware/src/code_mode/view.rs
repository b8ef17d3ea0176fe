//! What a model is shown of the tools that there are.

use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_core::{PerRun, RunCx, ToolSpecs};

use super::{CodeModeConfig, functions::Function, tool};

/// What the middleware and its tool share.
pub(super) struct Shared {
    pub(super) config: CodeModeConfig,
    pub(super) views: PerRun<Mutex<View>>,
}

/// What a run was last shown.
#[derive(Default)]
pub(super) struct View {
    offered: ToolSpecs,
    shown: ToolSpecs,
    functions: Vec<Function>,
}

impl Shared {
    /// What the model is shown of the tools that there are: programs, and what they do not call.
    pub(super) fn show(&self, cx: &RunCx, offered: &ToolSpecs) -> ToolSpecs {
        let views = self.views.of(cx, Mutex::default);
        let mut view = locked(&views);
        if view.offered.as_ptr() != offered.as_ptr() || view.shown.is_empty() {
            let (functions, stubs) = tool::offered(&self.config, offered);
            let others = offered.iter().filter(|tool| !self.config.is_callable(tool));
            let shown = others.map(|other| match other.name == self.config.tool {
                true => tool::spec(&self.config, &stubs),
                false => other.clone(),
            });
            view.shown = shown.collect();
            (view.offered, view.functions) = (offered.clone(), functions);
        }
        view.shown.clone()
    }

    /// The functions that the model was told of, if this process told it.
    pub(super) fn functions(&self, cx: &RunCx) -> Option<Vec<Function>> {
        let view = self.views.get(cx)?;
        let functions = locked(&view).functions.clone();
        Some(functions)
    }
}

fn locked(view: &Mutex<View>) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}
