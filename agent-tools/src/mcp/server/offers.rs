//! Registry of a server's tools, resources and prompts: lookup by name, and lists for clients.

use std::{collections::BTreeSet, fmt, sync::Arc};

use agent_core::{BoxFuture, Effect, Error, Message, Result, SubAgent, Tool, ToolOptions, ToolOutput, ToolSpec};
use rmcp::model::{self as told, ToolAnnotations};
use serde_json::{Value, json};

use super::{CompletionRequest, PromptRequest, ResourceRequest, template::Template};
use crate::{
    ArgumentSchema,
    mcp::{Prompt, Resource, ResourceTemplate},
};

/// Handler function of the application.
pub(super) type Handle<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<'static, Result<A>> + Send + Sync>;

/// Handler that reads a resource.
type Read = Handle<ResourceRequest, ToolOutput>;

/// Registrations collected by the builder.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) tools: Vec<What>,
    pub(super) resources: Vec<(Resource, Read)>,
    pub(super) templates: Vec<(ResourceTemplate, Read)>,
    pub(super) prompts: Vec<(Prompt, Handle<PromptRequest, Vec<Message>>)>,
    pub(super) completions: Vec<(String, String, Handle<CompletionRequest, Vec<String>>)>,
}

/// Registry of a server.
pub(super) struct Offers {
    entries: Vec<Entry>,
    parts: Parts,
    /// Parsed resource templates, in registration order.
    templates: Vec<Template>,
    pub(super) lists: Lists,
}

/// Lists for clients.
#[derive(PartialEq)]
pub(super) struct Lists {
    pub(super) tools: Vec<told::Tool>,
    pub(super) resources: Vec<told::Resource>,
    pub(super) templates: Vec<told::ResourceTemplate>,
    pub(super) prompts: Vec<told::Prompt>,
}

/// Callable entry.
pub(super) struct Entry {
    pub(super) spec: ToolSpec,
    pub(super) options: ToolOptions,
    pub(super) schema: ArgumentSchema,
    pub(super) what: What,
}

pub(super) enum What {
    Tool(Arc<dyn Tool>),
    Agent(SubAgent),
}

impl Entry {
    fn new(what: What) -> Result<Self> {
        let (spec, options) = match &what {
            What::Tool(tool) => (tool.spec(), tool.options()),
            What::Agent(agent) => (spec_of(agent), ToolOptions::default()),
        };
        let schema = ArgumentSchema::compile(&spec)?;
        Ok(Self { spec, options, schema, what })
    }
}

fn spec_of(agent: &SubAgent) -> ToolSpec {
    let task = json!({
        "type": "object",
        "properties": {"task": {"type": "string", "description": "What is to be done, with all that must be known for it."}},
        "required": ["task"],
    });
    ToolSpec::new(agent.key.clone(), agent.description.clone(), task)
}

/// Rejects duplicate names.
fn once<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Error::config(format!("two {what} of the server are named '{name}'")));
        }
    }
    Ok(())
}

impl Offers {
    pub(super) fn new(mut parts: Parts) -> Result<Self> {
        let entries = std::mem::take(&mut parts.tools).into_iter().map(Entry::new).collect::<Result<Vec<_>>>()?;
        let templates = parts.templates.iter().map(|(about, _)| Template::parse(&about.uri));
        let templates = templates.collect::<Result<Vec<_>>>()?;
        once("tools", entries.iter().map(|entry| entry.spec.name.as_str()))?;
        once("resources", parts.resources.iter().map(|(about, _)| about.uri.as_str()))?;
        once("templates", parts.templates.iter().map(|(about, _)| about.uri.as_str()))?;
        once("prompts", parts.prompts.iter().map(|(about, _)| about.name.as_str()))?;
        let lists = Lists {
            tools: entries.iter().map(tool).collect(),
            resources: parts.resources.iter().map(|(about, _)| about.into()).collect(),
            templates: parts.templates.iter().map(|(about, _)| about.into()).collect(),
            prompts: parts.prompts.iter().map(|(about, _)| about.into()).collect(),
        };
        let offers = Self { entries, parts, templates, lists };
        match offers.parts.completions.iter().find(|(of, argument, _)| !offers.has_argument(of, argument)) {
            Some((of, argument, _)) => {
                let message = format!("'{argument}' of '{of}' is to be completed: there is no such prompt or template");
                Err(Error::config(message))
            }
            None => Ok(offers),
        }
    }

    fn has_argument(&self, of: &str, argument: &str) -> bool {
        let prompts = self.parts.prompts.iter().filter(|(about, _)| about.name == of);
        let templates = self.parts.templates.iter().zip(&self.templates).filter(|((about, _), _)| about.uri == of);
        prompts.flat_map(|(about, _)| &about.arguments).any(|known| known.name == argument)
            || templates.flat_map(|(_, template)| template.names()).any(|name| name == argument)
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.spec.name == name)
    }

    /// Finds the resource of this URI: the request, its handler, and its media type.
    pub(super) fn resource(&self, uri: &str) -> Option<(ResourceRequest, &Read, Option<&str>)> {
        let request = |values| ResourceRequest { uri: uri.to_owned(), values };
        if let Some((about, read)) = self.parts.resources.iter().find(|(about, _)| about.uri == uri) {
            return Some((request(Default::default()), read, about.mime.as_deref()));
        }
        let mut templates = self.parts.templates.iter().zip(&self.templates);
        templates
            .find_map(|((about, read), template)| Some((request(template.values(uri)?), read, about.mime.as_deref())))
    }

    pub(super) fn prompt(&self, name: &str) -> Option<&(Prompt, Handle<PromptRequest, Vec<Message>>)> {
        self.parts.prompts.iter().find(|(about, _)| about.name == name)
    }

    pub(super) fn completion(&self, of: &str, argument: &str) -> Option<&Handle<CompletionRequest, Vec<String>>> {
        let mut known = self.parts.completions.iter();
        known.find(|(name, about, _)| name == of && about == argument).map(|(_, _, complete)| complete)
    }

    pub(super) fn completes(&self) -> bool {
        !self.parts.completions.is_empty()
    }
}

impl fmt::Debug for Offers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.entries.iter().map(|entry| &entry.spec.name).collect();
        let resources: Vec<_> = self.parts.resources.iter().map(|(about, _)| &about.uri).collect();
        let prompts: Vec<_> = self.parts.prompts.iter().map(|(about, _)| &about.name).collect();
        f.debug_struct("Offers")
            .field("tools", &names)
            .field("resources", &resources)
            .field("prompts", &prompts)
            .finish_non_exhaustive()
    }
}

/// Describes a tool for clients.
fn tool(entry: &Entry) -> told::Tool {
    let schema = entry.spec.parameters.as_object().cloned().unwrap_or_default();
    let mut hints = match entry.options.effect {
        Effect::Pure => ToolAnnotations::new().read_only(true),
        Effect::Idempotent => ToolAnnotations::new().read_only(false).idempotent(true),
        _ => ToolAnnotations::new().read_only(false).idempotent(false),
    };
    hints.destructive_hint = entry.options.hints.destructive;
    hints.open_world_hint = entry.options.hints.open_world;
    let mut tool =
        told::Tool::new(entry.spec.name.clone(), entry.spec.description.clone(), schema).with_annotations(hints);
    // Clients of older revisions, which allow objects only, are not sent other schemas.
    tool.output_schema = entry.spec.output.as_ref().and_then(Value::as_object).cloned().map(Arc::new);
    tool
}

impl From<&Resource> for told::Resource {
    fn from(about: &Resource) -> Self {
        let mut resource = Self::new(&about.uri, &about.name);
        (resource.title, resource.description) = (about.title.clone(), about.description.clone());
        (resource.mime_type, resource.size) = (about.mime.clone(), about.size);
        resource
    }
}

impl From<&ResourceTemplate> for told::ResourceTemplate {
    fn from(about: &ResourceTemplate) -> Self {
        let mut template = Self::new(&about.uri, &about.name);
        (template.title, template.description) = (about.title.clone(), about.description.clone());
        template.mime_type.clone_from(&about.mime);
        template
    }
}

impl From<&Prompt> for told::Prompt {
    fn from(about: &Prompt) -> Self {
        let arguments = about.arguments.iter().map(|argument| {
            let mut told = told::PromptArgument::new(&argument.name).with_required(argument.required);
            told.description.clone_from(&argument.description);
            told
        });
        let mut prompt = Self::new(&about.name, about.description.clone(), Some(arguments.collect()));
        prompt.title.clone_from(&about.title);
        prompt
    }
}
