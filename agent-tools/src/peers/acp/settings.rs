//! [`Settings`].

use std::{path::PathBuf, time::Duration};

use serde_json::Value;

use super::permission::Rule;
use crate::{Stdio, Workspace};

/// Settings of the builder.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) program: Stdio,
    pub(super) name: String,
    /// Resolved by `build`, if it is not set.
    pub(super) directory: Option<PathBuf>,
    pub(super) workspace: Option<Workspace>,
    #[cfg(feature = "sandbox")]
    pub(super) sandbox: Option<std::sync::Arc<dyn crate::sandbox::Sandbox>>,
    /// MCP servers by name.
    pub(super) servers: Vec<(String, Stdio)>,
    pub(super) method: Option<String>,
    /// Options of each session, by their ids.
    pub(super) options: Vec<(String, Value)>,
    pub(super) rule: Rule,
    pub(super) repeatable: bool,
    pub(super) time: Duration,
    pub(super) start: Duration,
    pub(super) keep: Duration,
    pub(super) line: usize,
    pub(super) answer: usize,
}

impl Settings {
    pub(super) fn new(program: Stdio) -> Self {
        Self {
            program,
            name: "acp".to_owned(),
            directory: None,
            workspace: None,
            #[cfg(feature = "sandbox")]
            sandbox: None,
            servers: Vec::new(),
            method: None,
            options: Vec::new(),
            rule: Rule::default(),
            repeatable: false,
            time: Duration::from_secs(3600),
            start: Duration::from_secs(60),
            keep: Duration::from_secs(600),
            line: 4 << 20,
            answer: 1 << 20,
        }
    }

    pub(super) fn has_terminals(&self) -> bool {
        #[cfg(feature = "sandbox")]
        let has = self.sandbox.is_some();
        #[cfg(not(feature = "sandbox"))]
        let has = false;
        has
    }
}
