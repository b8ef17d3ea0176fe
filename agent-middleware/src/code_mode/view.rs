//! What a model is shown of the tools that there are.

use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_core::{PerRun, RunCx, ToolSpecs};

use super::{CodeModeConfig, tool};

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
}

impl Shared {
    /// What the model is shown of the tools that there are: programs, and what they do not call.
    pub(super) fn show(&self, cx: &RunCx, offered: &ToolSpecs) -> ToolSpecs {
        let views = self.views.of(cx, Mutex::default);
        let mut view = locked(&views);
        if view.offered.as_ptr() != offered.as_ptr() || view.shown.is_empty() {
            let stubs = tool::stubs(&self.config, offered);
            let others = offered.iter().filter(|tool| !self.config.is_callable(tool));
            let shown = others.map(|other| match other.name == self.config.tool {
                true => tool::spec(&self.config, &stubs),
                false => other.clone(),
            });
            view.shown = shown.collect();
            view.offered = offered.clone();
        }
        view.shown.clone()
    }

    /// The tools that the model was told of, if this process told it.
    pub(super) fn told(&self, cx: &RunCx) -> Option<ToolSpecs> {
        let view = self.views.get(cx)?;
        let offered = locked(&view).offered.clone();
        Some(offered)
    }
}

fn locked(view: &Mutex<View>) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}
