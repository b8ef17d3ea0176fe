//! Parts of a trusted plugin for an agent.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use agent_core::{Error, Result, Tool, ToolSpec};
use serde_json::Value;

use super::{
    Plugin,
    config::Values,
    manifest::{Api, RestrictionPolicy, Script, Server},
};
use crate::{
    Skills, ToolSet,
    mcp::{Client, ClientBuilder, Http, Stdio, Streams},
    openapi::OpenApi,
    sandbox::{Command, ProgramTool, Sandbox},
    wildcard,
};

/// Parts of a plugin for an agent, without the tools that its own rules deny.
#[derive(Debug)]
#[non_exhaustive]
pub struct Parts {
    /// Scripts and API operations. Their names begin with the plugin's name and `_`.
    pub tools: ToolSet,
    /// MCP servers, started or connected when a run needs them.
    pub servers: Vec<Client>,
    /// Skills. Merge those of all plugins and the application's own into one [`Skills`], which
    /// supplies the agent's tools.
    pub skills: Skills,
    /// Prompt texts, by name.
    pub prompts: BTreeMap<String, String>,
    /// Sub-agents. Their names begin with the plugin's name and `_`.
    pub agents: Vec<SubAgent>,
    /// Name patterns of tools whose calls need a person's approval: one `Approval` rule each. `*`
    /// matches anything.
    pub ask: Vec<String>,
}

/// Sub-agent described by a plugin. The application supplies its model and limits.
#[derive(Debug)]
#[non_exhaustive]
pub struct SubAgent {
    /// Name of the sub-agent.
    pub name: String,
    /// Purpose, for the model that delegates to it.
    pub description: String,
    /// System prompt.
    pub prompt: String,
    /// Scripts and operations of the plugin that it may call.
    pub tools: ToolSet,
}

impl Plugin {
    pub(super) fn parts(&self, config: &Value, sandbox: &Arc<dyn Sandbox>) -> Result<Parts> {
        let values = Arc::new(Values::read(&self.manifest.config, config)?);
        let mut tools = ToolSet::new(self.name());
        for (name, script) in &self.manifest.scripts {
            tools = tools.tool(self.script(name, script, &values, sandbox)?);
        }
        for (name, api) in &self.manifest.openapi {
            tools = tools.extend(self.api(api, &values)?.tools().prefixed(&format!("{name}_")));
        }
        let tools = tools.prefixed(&format!("{}_", self.name())).into_tools()?;
        let is_denied = |tool: &Arc<dyn Tool>| self.denied().any(|pattern| wildcard::fits(pattern, &tool.spec().name));
        let tools = ToolSet::new(self.name()).extend(tools.into_iter().filter(|tool| !is_denied(tool)));
        let servers = self.manifest.mcp.iter().map(|(name, server)| self.server(name, server, &values, sandbox));
        let servers = servers.collect::<Result<_>>()?;
        let mut skills = Skills::new();
        for folder in &self.manifest.skills {
            for skill in Skills::open(self.dir().join(folder))?.iter() {
                skills = skills.skill(skill.clone().keep(self.folder.clone()))?;
            }
        }
        let text = |file: &String| self.folder.text(file).map(str::to_owned);
        let prompts = self.manifest.prompts.iter().map(|(name, file)| Ok((name.clone(), text(file)?)));
        let agents = self.manifest.agents.iter().map(|(name, agent)| {
            let is_its = |tool: &Arc<dyn Tool>| {
                let name = tool.spec().name;
                agent.tools.iter().any(|pattern| wildcard::fits(pattern, &name))
            };
            Ok(SubAgent {
                name: format!("{}_{name}", self.name()),
                description: agent.description.clone(),
                prompt: text(&agent.prompt)?,
                tools: ToolSet::new(name).extend(tools.clone().into_iter().filter(is_its)),
            })
        });
        let (prompts, agents) = (prompts.collect::<Result<_>>()?, agents.collect::<Result<_>>()?);
        let ask = self.manifest.restricted(RestrictionPolicy::Ask).map(str::to_owned).collect();
        Ok(Parts { tools, servers, skills, prompts, agents, ask })
    }

    fn denied(&self) -> impl Iterator<Item = &str> {
        self.manifest.restricted(RestrictionPolicy::Deny)
    }

    fn script(
        &self,
        name: &str,
        script: &Script,
        values: &Arc<Values>,
        sandbox: &Arc<dyn Sandbox>,
    ) -> Result<ProgramTool> {
        let command = self.command(&script.command, &script.env, values)?;
        let spec = ToolSpec::new(name, &script.description, script.parameters.clone());
        let hidden = values.clone();
        Ok(ProgramTool::new(spec, command, sandbox.clone())
            .effect(script.effect.into())
            .timeout(Duration::from_secs(script.timeout.into()))
            .hide(move |text| hidden.hide(text))
            .keep(self.folder.clone()))
    }

    /// Converts a command of the manifest to a sandbox command.
    fn command(&self, words: &[String], env: &BTreeMap<String, String>, values: &Values) -> Result<Command> {
        let words = words.iter().map(|word| values.fill(word, self.dir(), false)).collect::<Result<Vec<_>>>()?;
        let command = words[1..].iter().fold(Command::new(&words[0]), Command::arg);
        env.iter().try_fold(command, |command, (name, text)| {
            Ok::<_, Error>(command.env(name, values.fill(text, self.dir(), true)?))
        })
    }

    fn api(&self, api: &Api, values: &Values) -> Result<OpenApi> {
        let mut builder = OpenApi::builder(self.folder.text(&api.document)?);
        if let Some(server) = &api.server {
            builder = builder.server(values.fill(server, self.dir(), false)?);
        }
        for (scheme, text) in &api.secrets {
            builder = builder.secret(scheme, values.fill(text, self.dir(), true)?);
        }
        builder.build()
    }

    fn server(&self, name: &str, server: &Server, values: &Values, sandbox: &Arc<dyn Sandbox>) -> Result<Client> {
        let (full, dir) = (format!("{}_{name}", self.name()), self.dir());
        let builder = match &server.url {
            Some(url) => {
                let mut http = Http::new(values.fill(url, dir, false)?);
                for (name, text) in &server.headers {
                    http = http.header(name, values.fill(text, dir, true)?);
                }
                Client::builder(&full, http)
            }
            None => {
                let command = self.command(&server.command, &server.env, values)?;
                if server.outside_sandbox {
                    let stdio = Stdio::new(command.program).args(command.args).directory(dir);
                    let stdio = command.env.into_iter().fold(stdio, |stdio, (name, value)| stdio.env(name, value));
                    Client::builder(&full, stdio)
                } else {
                    Client::builder(&full, Streams::in_sandbox(sandbox.clone(), command))
                }
            }
        };
        let prefix = format!("{full}_");
        let denied = self.denied().flat_map(|pattern| wildcard::rests(pattern, &prefix));
        let builder = denied.fold(builder, ClientBuilder::deny);
        builder.keep(self.folder.clone()).build()
    }
}
