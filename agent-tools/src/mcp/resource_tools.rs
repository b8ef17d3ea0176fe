//! Tools with which a model reads a server's resources.

use std::{fmt::Write as _, sync::Arc};

use agent_core::{Effect, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};
use serde::Deserialize;
use serde_json::json;

use super::{Client, failure::within, name};

/// Returns the tools that list and read resources.
pub(super) fn of(client: &Client, taken: impl Fn(&str) -> bool) -> Vec<Arc<dyn Tool>> {
    let (server, prefix) = (client.name(), &client.link.settings.prefix);
    let none = json!({"type": "object", "properties": {}});
    let uri = json!({
        "type": "object",
        "properties": {"uri": {"type": "string", "description": "The resource's URI."}},
        "required": ["uri"],
    });
    let list = format!("Lists the resources of the server '{server}', and templates for the URIs of more.");
    let read = format!("Reads a resource of the server '{server}'.");
    let spec = |tool, description, parameters| ToolSpec::new(name::of(prefix, tool, &taken), description, parameters);
    vec![
        Arc::new(List(client.apart(), spec("list_resources", list, none))),
        Arc::new(Read(client.apart(), spec("read_resource", read, uri))),
    ]
}

struct List(Client, ToolSpec);

struct Read(Client, ToolSpec);

#[derive(Deserialize)]
struct Which {
    uri: String,
}

#[async_trait]
impl Tool for List {
    fn spec(&self) -> ToolSpec {
        self.1.clone()
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let settings = &self.0.link.settings;
        let (resources, templates) = within(settings, Some(&req.cx), settings.timeout, async {
            // Some servers have no templates.
            let templates = self.0.resource_templates().await.unwrap_or_default();
            Ok((self.0.resources().await?, templates))
        })
        .await?;
        let resources = resources.iter().map(|r| (&r.uri, &r.name, &r.mime, &r.description));
        let templates = templates.iter().map(|t| (&t.uri, &t.name, &t.mime, &t.description));
        let mut text = String::new();
        for (uri, name, mime, description) in resources.chain(templates) {
            let more = [mime.as_deref(), description.as_deref()].into_iter().flatten().map(|fact| format!(", {fact}"));
            let _ = writeln!(text, "{uri}: {name}{}", more.collect::<String>());
            if text.len() > settings.limit {
                text.push_str("There are more, which are left out.\n");
                break;
            }
        }
        Ok(ToolOutput::text(if text.is_empty() { "There are none.".to_owned() } else { text }))
    }
}

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        self.1.clone()
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let Which { uri } = req.parse()?;
        let settings = &self.0.link.settings;
        let parts = within(settings, Some(&req.cx), settings.timeout, self.0.read_resource(&uri)).await?;
        Ok(ToolOutput::parts(parts))
    }
}
