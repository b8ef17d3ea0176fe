//! Plugins: folders that bring tools, skills and prompts, and are shown before they are trusted.
//!
//! [`Plugin::load`] only reads: nothing of the folder runs. Printed, a plugin says all that it brings, with a digest over every byte of its
//! folder. [`Plugin::trust`] takes the digest that was looked at, and makes [`Parts`] for an agent.
//!
//! Code of a plugin runs in processes alone: scripts in the [`Sandbox`] that the application gives, servers of tools as programs of their
//! own. A file that is changed after the plugin was trusted is noticed when the plugin is loaded again, not before: keep the folder where
//! nobody else writes.

mod config;
mod folder;
mod manifest;
mod script;

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc, time::Duration};

use agent_core::{Error, Result, ToolSpec};
use serde_json::Value;

pub use self::manifest::{Restriction, RestrictionPolicy};
use self::{config::Values, folder::Folder, manifest::Manifest, script::ScriptTool};
use crate::{
    Skills, ToolSet,
    mcp::{Client, Http, Stdio},
    openapi::OpenApi,
    sandbox::{Command, Sandbox},
};

/// A plugin as it was read, which is not trusted yet; see the [module](self).
#[derive(Clone, Debug)]
pub struct Plugin {
    folder: Folder,
    manifest: Manifest,
    digest: String,
}

/// What a plugin brings to an agent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Parts {
    /// Scripts, operations of APIs, and the tools of skills. Names of scripts and operations begin with the plugin's and `_`.
    pub tools: ToolSet,
    /// Servers of tools, which are started or reached when a run needs them.
    pub servers: Vec<Client>,
    /// Texts of prompts, by name.
    pub prompts: BTreeMap<String, String>,
    /// Rules that narrow what the application allows. Their patterns are for the names that tools have in the agent.
    pub restrictions: Vec<Restriction>,
}

impl Plugin {
    /// Reads the plugin in a folder. Nothing of it runs.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if its `plugin.yaml` has something wrong, with the key; if it is for another version of the
    /// framework; if the folder has links, more than 2,000 files or more than 32 MiB; if a file or a folder that is named is not in it.
    pub fn load(dir: impl AsRef<Path>) -> Result<Self> {
        let folder = Folder::read(dir.as_ref())?;
        let in_folder = |e: Error| e.map_message(|why| format!("plugin '{}': {why}", folder.dir.display()));
        let manifest = folder.text("plugin.yaml").and_then(Manifest::read).map_err(in_folder)?;
        let files = manifest.prompts.values().chain(manifest.openapi.values().map(|api| &api.document));
        for file in files {
            folder.text(file).map_err(in_folder)?;
        }
        if let Some(skills) = manifest.skills.iter().find(|skills| !folder.has_below(skills)) {
            return Err(in_folder(Error::config(format!("skills: '{skills}' is not a folder of the plugin"))));
        }
        let digest = folder.digest();
        Ok(Self { folder, manifest, digest })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// The real path of its folder: a sandbox for its scripts must let them read it.
    pub fn dir(&self) -> &Path {
        &self.folder.dir
    }

    /// SHA-256 over the names and bytes of all its files, in hexadecimal. What is trusted is this.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Takes the plugin as trusted, if it is what was looked at. Values of `config` are by name; null is none. A secret is given by reference:
    /// `{"env": NAME}` or `{"file": PATH}`. Scripts run in `sandbox`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if `digest` is not that of the folder as it is now, for a value that is missing, unknown or of another
    /// type, for a secret that is written out or would be seen by others, and for a part that cannot be made.
    pub fn trust(&self, digest: &str, config: &Value, sandbox: &Arc<dyn Sandbox>) -> Result<Parts> {
        if digest != self.digest || Folder::read(&self.folder.dir)?.digest() != digest {
            let name = self.name();
            return Err(Error::config(format!(
                "plugin '{name}' is not what was trusted: load it, look at it, and trust its new digest"
            )));
        }
        self.parts(config, sandbox).map_err(|e| e.map_message(|why| format!("plugin '{}': {why}", self.name())))
    }

    fn parts(&self, config: &Value, sandbox: &Arc<dyn Sandbox>) -> Result<Parts> {
        let (manifest, dir) = (&self.manifest, &*self.folder.dir);
        let values = Arc::new(Values::read(&manifest.config, config)?);
        let plain = |text: &String| values.fill(text, dir, false);
        let secret = |text: &String| values.fill(text, dir, true);
        let mut tools = ToolSet::new(self.name());
        for (name, script) in &manifest.scripts {
            let words = script.command.iter().map(plain).collect::<Result<Vec<_>>>()?;
            let command = words[1..].iter().fold(Command::new(&words[0]), Command::arg);
            let command =
                script.env.iter().try_fold(command, |c, (name, v)| Ok::<_, Error>(c.env(name, secret(v)?)))?;
            tools = tools.tool(ScriptTool {
                spec: ToolSpec::new(name, &script.description, script.parameters.clone()),
                command,
                effect: script.effect.into(),
                timeout: Duration::from_secs(script.timeout.into()),
                values: values.clone(),
                sandbox: sandbox.clone(),
            });
        }
        for (name, api) in &manifest.openapi {
            let mut builder = OpenApi::builder(self.folder.text(&api.document)?);
            if let Some(server) = &api.server {
                builder = builder.server(plain(server)?);
            }
            for (scheme, text) in &api.secrets {
                builder = builder.secret(scheme, secret(text)?);
            }
            tools = tools.extend(builder.build()?.tools().prefixed(&format!("{name}_")));
        }
        tools = tools.prefixed(&format!("{}_", self.name()));
        let mut skills = Skills::new();
        for folder in &manifest.skills {
            for skill in Skills::open(dir.join(folder))?.iter() {
                skills = skills.skill(skill.clone())?;
            }
        }
        tools = tools.extend(skills.tools());
        let mut servers = Vec::new();
        for (name, server) in &manifest.mcp {
            let full = format!("{}_{name}", self.name());
            servers.push(match &server.url {
                Some(url) => {
                    let mut http = Http::new(plain(url)?);
                    for (name, text) in &server.headers {
                        http = http.header(name, secret(text)?);
                    }
                    Client::builder(full, http).build()?
                }
                None => {
                    let words = server.command.iter().map(plain).collect::<Result<Vec<_>>>()?;
                    let mut stdio = Stdio::new(&words[0]).args(&words[1..]).directory(dir);
                    for (name, text) in &server.env {
                        stdio = stdio.env(name, secret(text)?);
                    }
                    Client::builder(full, stdio).build()?
                }
            });
        }
        let texts = manifest.prompts.iter().map(|(name, file)| Ok((name.clone(), self.folder.text(file)?.to_owned())));
        let restrictions = manifest.permissions.clone();
        Ok(Parts { tools, servers, prompts: texts.collect::<Result<_>>()?, restrictions })
    }
}

/// All that it brings. What stands in it is the plugin's own word, with control characters written out.
impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let manifest = &self.manifest;
        writeln!(f, "plugin {} {}: {:?}", manifest.name, manifest.version, manifest.description)?;
        writeln!(f, "folder {:?}\ndigest {}", self.folder.dir, self.digest)?;
        for (name, value) in &manifest.config {
            let secret = if value.secret { ", secret" } else { "" };
            let required = if value.required { ", required" } else { "" };
            writeln!(f, "value {name:?}: {:?}{secret}{required}: {:?}", value.kind, value.description)?;
        }
        for (name, script) in &manifest.scripts {
            let (effect, env) = (script.effect, &script.env);
            writeln!(f, "script {name}: runs {:?}, env {env:?}, {effect:?}: {:?}", script.command, script.description)?;
        }
        for (name, server) in &manifest.mcp {
            match &server.url {
                Some(url) => writeln!(f, "server {name}: asks {url:?}, headers {:?}", server.headers),
                None => {
                    writeln!(f, "server {name}: runs {:?} outside any sandbox, env {:?}", server.command, server.env)
                }
            }?;
        }
        for (name, api) in &manifest.openapi {
            let server = api.server.as_deref().unwrap_or("the server of the document");
            writeln!(f, "API {name}: {:?}, asks {server:?}, secrets {:?}", api.document, api.secrets)?;
        }
        for folder in &manifest.skills {
            writeln!(f, "skills in {folder:?}")?;
        }
        for (name, file) in &manifest.prompts {
            writeln!(f, "prompt {name:?}: {file:?}")?;
        }
        for rule in &manifest.permissions {
            writeln!(f, "permission: {:?} {:?}", rule.policy, rule.tool)?;
        }
        Ok(())
    }
}
