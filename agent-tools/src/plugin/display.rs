//! Display of a plugin's content for the person who decides on trust.

use std::fmt;

use super::Plugin;
use crate::openapi::servers;

/// Prints everything that the plugin contains. The text is untrusted, so control characters are
/// escaped.
impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (manifest, folder) = (&self.manifest, &self.folder);
        writeln!(f, "plugin {} {}: {:?}", manifest.name, manifest.version, manifest.description)?;
        writeln!(f, "folder {:?}\ndigest {}", folder.from, self.digest)?;
        self.shown().into_iter().try_for_each(|(name, says)| writeln!(f, "{name}: {says}"))
    }
}

impl Plugin {
    /// Returns the parts: name and description of each.
    pub(super) fn shown(&self) -> Vec<(String, String)> {
        let (manifest, folder) = (&self.manifest, &self.folder);
        let text = |file: &str| folder.text(file).unwrap_or_default();
        let mut parts = Vec::new();
        for (name, value) in &manifest.config {
            let secret = if value.secret { ", secret" } else { "" };
            let required = if value.required { ", required" } else { "" };
            let default = value.default.as_ref().map(|value| format!(", default {:?}", value.to_string()));
            let default = default.unwrap_or_default();
            let says = format!("{:?}{secret}{required}{default}: {:?}", value.kind, value.description);
            parts.push((format!("value {name:?}"), says));
        }
        for (name, script) in &manifest.scripts {
            let (effect, env, takes) = (script.effect, &script.env, script.parameters.to_string());
            let says = format!("runs {:?}, env {env:?}, {effect:?}: {:?}", script.command, script.description);
            parts.push((format!("script {name}"), format!("{says}\n  takes {takes:?}")));
        }
        for (name, server) in &manifest.mcp {
            let says = match (&server.url, server.outside_sandbox) {
                (Some(url), _) => format!("asks {url:?}, headers {:?}", server.headers),
                (None, false) => format!("runs {:?} in the sandbox, env {:?}", server.command, server.env),
                (None, true) => format!(
                    "runs {:?} OUTSIDE ANY SANDBOX, with all rights of this user, env {:?}",
                    server.command, server.env
                ),
            };
            parts.push((format!("server {name}"), says));
        }
        for (name, api) in &manifest.openapi {
            let asked = api.server.as_ref().map_or_else(|| servers(text(&api.document)), |one| vec![one.clone()]);
            let says = format!("{:?}, asks one of {asked:?}, secrets {:?}", api.document, api.secrets);
            parts.push((format!("API {name}"), says));
        }
        for (path, bytes) in manifest.skills.iter().flat_map(|skills| folder.below(skills)) {
            parts.push((format!("skill {path:?}"), format!("{bytes} bytes: {:?}", text(path))));
        }
        for (name, file) in &manifest.prompts {
            parts.push((format!("prompt {name:?}"), format!("{file:?}: {:?}", text(file))));
        }
        for (name, agent) in &manifest.agents {
            let says = format!("tools {:?}: {:?}", agent.tools, agent.description);
            let prompt = format!("\n  prompt {:?}: {:?}", agent.prompt, text(&agent.prompt));
            parts.push((format!("agent {name}"), says + &prompt));
        }
        for (at, rule) in manifest.permissions.iter().enumerate() {
            parts.push((format!("permission {}", at + 1), format!("{:?} {:?}", rule.policy, rule.tool)));
        }
        parts
    }
}
