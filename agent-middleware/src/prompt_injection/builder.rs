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

/// Builder of a [`PromptInjection`]. Without labels it uses the
/// [default labels](PromptInjectionConfig).
#[derive(Default)]
pub struct PromptInjectionBuilder {
    config: PromptInjectionConfig,
    reader: Option<Arc<dyn Model>>,
    archive: Option<Arc<dyn Archive>>,
}

impl PromptInjectionBuilder {
    /// Sets all settings that are data.
    #[must_use]
    pub fn config(mut self, config: PromptInjectionConfig) -> Self {
        self.config = config;
        self
    }

    /// Adds a label to the outputs of these tools.
    #[must_use]
    pub fn label(mut self, tool: impl Into<String>, label: Label) -> Self {
        self.config.tools.entry(tool.into()).or_default().insert(label);
        self
    }

    /// Marks the outputs of these tools as untrusted: anybody may have written them.
    #[must_use]
    pub fn untrusted(self, tool: impl Into<String>) -> Self {
        self.label(tool, Label::Untrusted)
    }

    /// Marks the outputs of these tools as secret: they must not leave the agent.
    #[must_use]
    pub fn secret(self, tool: impl Into<String>) -> Self {
        self.label(tool, Label::Secret)
    }

    /// Sets the label of outputs of tools without a matching pattern. Default: trusted if something
    /// else is labelled, untrusted otherwise.
    #[must_use]
    pub fn other_tools(mut self, label: Label) -> Self {
        self.config.other_tools = Some(label);
        self
    }

    /// Sets the label of user messages. Default: trusted.
    #[must_use]
    pub fn user(mut self, label: Label) -> Self {
        self.config.user = label;
        self
    }

    /// Adds a sink: a tool through which data can leave the agent.
    #[must_use]
    pub fn sink(mut self, sink: Sink) -> Self {
        self.config.sinks.push(sink);
        self
    }

    /// Quarantines the outputs of these tools: a model with tools never receives them; the
    /// [reader](Self::reader) reads them on behalf of `read_quarantined`.
    #[must_use]
    pub fn quarantine(mut self, tool: impl Into<String>) -> Self {
        self.config.quarantine.insert(tool.into());
        self
    }

    /// Sets the JSON Schema of data extracted from the outputs of a quarantined tool. If it allows
    /// no free text, the data counts as trusted.
    #[must_use]
    pub fn extract(mut self, tool: impl Into<String>, schema: Value) -> Self {
        self.config.extract.insert(tool.into(), schema);
        self
    }

    part_setters! {
        /// Sets the model that reads quarantined outputs. It has no tools.
        reader: Model;

        /// Sets the archive of quarantined outputs. Default: the session.
        archive: Archive;
    }

    /// Sets whether untrusted outputs are enclosed in delimiters. Default: true.
    #[must_use]
    pub fn fence(mut self, wanted: bool) -> Self {
        self.config.fence = wanted;
        self
    }

    /// Sets the treatment of links in answers. Default: they are removed.
    #[must_use]
    pub fn links(mut self, links: Links) -> Self {
        self.config.links = links;
        self
    }

    /// Allows links to a host: `example.com`, or `*.example.com` for its subdomains.
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.config.allow_hosts.insert(host.into());
        self
    }

    /// Checks the settings and builds the middleware.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if all content is trusted, for a sink with
    /// the policy to allow, an invalid schema, or a quarantine without a reader.
    pub fn build(self) -> Result<PromptInjection> {
        let Self { config, reader, archive } = self;
        let config = config.with_defaults();
        if config.trusts_all() {
            return Err(Error::config(
                "prompt_injection: all content is trusted: label a tool, or leave the labels out",
            ));
        }
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
