//! What a plugin brings, for who is to trust it.

use std::fmt;

use super::Plugin;
use crate::openapi::servers;

/// All that it brings. What stands in it is the plugin's own word, with control characters written out.
impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (manifest, folder) = (&self.manifest, &self.folder);
        let text = |file: &str| folder.text(file).unwrap_or_default();
        writeln!(f, "plugin {} {}: {:?}", manifest.name, manifest.version, manifest.description)?;
        writeln!(f, "folder {:?}\ndigest {}", folder.from, self.digest)?;
        for (name, value) in &manifest.config {
            let secret = if value.secret { ", secret" } else { "" };
            let required = if value.required { ", required" } else { "" };
            writeln!(f, "value {name:?}: {:?}{secret}{required}: {:?}", value.kind, value.description)?;
        }
        for (name, script) in &manifest.scripts {
            let (effect, env) = (script.effect, &script.env);
            writeln!(f, "script {name}: runs {:?}, env {env:?}, {effect:?}: {:?}", script.command, script.description)?;
            writeln!(f, "  takes {:?}", script.parameters.to_string())?;
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
            let asked = api.server.as_ref().map_or_else(|| servers(text(&api.document)), |one| vec![one.clone()]);
            writeln!(f, "API {name}: {:?}, asks one of {asked:?}, secrets {:?}", api.document, api.secrets)?;
        }
        for (path, bytes) in manifest.skills.iter().flat_map(|skills| folder.below(skills)) {
            writeln!(f, "skill {path:?}, {bytes} bytes: {:?}", text(path))?;
        }
        for (name, file) in &manifest.prompts {
            writeln!(f, "prompt {name:?} {file:?}: {:?}", text(file))?;
        }
        for (name, agent) in &manifest.agents {
            writeln!(f, "agent {name}: tools {:?}: {:?}", agent.tools, agent.description)?;
            writeln!(f, "  prompt {:?}: {:?}", agent.prompt, text(&agent.prompt))?;
        }
        for rule in &manifest.permissions {
            writeln!(f, "permission: {:?} {:?}", rule.policy, rule.tool)?;
        }
        Ok(())
    }
}
