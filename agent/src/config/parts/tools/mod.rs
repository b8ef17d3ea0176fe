//! Tools by name: what they are made from.

#[cfg(all(feature = "sandbox", target_os = "linux"))]
mod command;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "openapi")]
mod openapi;
#[cfg(all(feature = "plugins", target_os = "linux"))]
mod plugin;
#[cfg(all(feature = "sandbox", target_os = "linux"))]
mod shell;
#[cfg(feature = "skills")]
mod skills;
#[cfg(feature = "web")]
mod web;
#[cfg(feature = "workspace")]
mod workspace;

use agent_tools::AskUser;

use crate::config::Registry;

/// Adds all whose features are on.
pub(in crate::config) fn register(registry: Registry) -> Registry {
    let registry = registry.tool(AskUser::new());
    #[cfg(feature = "workspace")]
    let registry = registry.tools_with("workspace", workspace::tools);
    #[cfg(all(feature = "sandbox", target_os = "linux"))]
    let registry = registry.tools_with("shell", shell::tools).tools_with("command", command::tools);
    #[cfg(feature = "skills")]
    let registry = registry.tools_with("skills", skills::tools);
    #[cfg(feature = "web")]
    let registry = registry.tools_with("web", web::tools);
    #[cfg(feature = "openapi")]
    let registry = registry.tools_with("openapi", openapi::tools);
    #[cfg(all(feature = "plugins", target_os = "linux"))]
    let registry = registry.tools_with("plugin", plugin::tools);
    #[cfg(feature = "mcp")]
    let registry = registry.toolset_with("mcp", mcp::tools);
    registry
}
