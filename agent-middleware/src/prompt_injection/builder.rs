//! [`PromptInjectionBuilder`].

use std::{fmt, sync::Arc};

use agent_core::{Error, Model, Result, Tool};
use serde_json::Value;

use super::{
    Label, Links, PromptInjection, PromptInjectionConfig, Sink,
    links::LinkFilter,
    quarantine::{Quarantine, ReadQuarantined},
};
use crate::{
    archive::{Archive, SessionArchive},
    permissions::Policy,
    setters::part_setters,
};

/// Makes a [`PromptInjection`].
#[derive(Default)]
pub struct PromptInjectionBuilder {
    config: PromptInjectionConfig,
    reader: Option<Arc<dyn Model>>,
    archive: Option<Arc<dyn Archive>>,
}

impl PromptInjectionBuilder {
    /// Sets everything that is data.
    #[must_use]
    pub fn config(mut self, config: PromptInjectionConfig) -> Self {
        self.config = config;
        self
    }

    /// Gives what these tools give a label, beside those that they have.
    #[must_use]
    pub fn label(mut self, tool: impl Into<String>, label: Label) -> Self {
        self.config.tools.entry(tool.into()).or_default().insert(label);
        self
    }

    /// Anybody may have written what these tools give.
    #[must_use]
    pub fn untrusted(self, tool: impl Into<String>) -> Self {
        self.label(tool, Label::Untrusted)
    }

    /// What these tools give must not leave.
    #[must_use]
    pub fn secret(self, tool: impl Into<String>) -> Self {
        self.label(tool, Label::Secret)
    }

    /// Sets the label of what tools give that no pattern fits. Default: trusted.
    #[must_use]
    pub fn other_tools(mut self, label: Label) -> Self {
        self.config.other_tools = label;
        self
    }

    /// Sets the label of what users say. Default: trusted.
    #[must_use]
    pub fn user(mut self, label: Label) -> Self {
        self.config.user = label;
        self
    }

    /// Watches a tool through which something can leave.
    #[must_use]
    pub fn sink(mut self, sink: Sink) -> Self {
        self.config.sinks.push(sink);
        self
    }

    /// Never shows a model with tools what these tools give; `read_quarantined` has it read by the
    /// [reader](Self::reader).
    #[must_use]
    pub fn quarantine(mut self, tool: impl Into<String>) -> Self {
        self.config.quarantine.insert(tool.into());
        self
    }

    /// Sets the JSON Schema of what is read out of the outputs of a quarantined tool. If it allows no free text, what is read
    /// counts as trusted.
    #[must_use]
    pub fn extract(mut self, tool: impl Into<String>, schema: Value) -> Self {
        self.config.extract.insert(tool.into(), schema);
        self
    }

    part_setters! {
        /// Sets the model that reads what is in quarantine. It has no tools.
        reader: Model;

        /// Sets where quarantined outputs are kept. Default: in the session.
        archive: Archive;
    }

    /// Sets whether untrusted outputs are put between delimiters. Default: true.
    #[must_use]
    pub fn fence(mut self, wanted: bool) -> Self {
        self.config.fence = wanted;
        self
    }

    /// Sets what becomes of links in answers. Default: they are removed.
    #[must_use]
    pub fn links(mut self, links: Links) -> Self {
        self.config.links = links;
        self
    }

    /// Lets links lead to a host: `example.com`, or `*.example.com` for those below.
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.config.allow_hosts.insert(host.into());
        self
    }

    /// Checks everything and makes the middleware.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if a sink would be allowed always, a schema is none, or there is
    /// nobody to read what is in quarantine.
    pub fn build(self) -> Result<PromptInjection> {
        let Self { config, reader, archive } = self;
        if let Some(sink) = config.sinks.iter().find(|sink| sink.policy == Policy::Allow) {
            let tool = &sink.tool;
            return Err(Error::config(format!(
                "prompt_injection: sink '{tool}' allows what it is to watch: ask, or deny"
            )));
        }
        let quarantine = match (config.quarantine.is_empty(), reader) {
            (true, _) => None,
            (false, None) => {
                return Err(Error::config(
                    "prompt_injection: nobody reads what is in quarantine: set a reader, a model that is given no tools",
                ));
            }
            (false, Some(reader)) => {
                let archive = archive.unwrap_or_else(|| Arc::new(SessionArchive::new()));
                Some(Arc::new(Quarantine::new(archive, reader, &config.extract)?))
            }
        };
        let tool = |quarantine: &Arc<Quarantine>| Arc::new(ReadQuarantined(quarantine.clone())) as Arc<dyn Tool>;
        Ok(PromptInjection {
            links: Arc::new(LinkFilter::new(config.allow_hosts.iter().map(|host| host.to_lowercase()).collect())),
            tools: quarantine.iter().map(tool).collect(),
            quarantine,
            config,
            contexts: Default::default(),
            heard: Default::default(),
        })
    }
}

impl fmt::Debug for PromptInjectionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptInjectionBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}
