//! Tools by name: what they are made from.

#[cfg(feature = "a2a")]
mod a2a;
#[cfg(feature = "acp")]
mod acp;
#[cfg(all(feature = "sandbox", target_os = "linux"))]
mod command;
#[cfg(any(all(feature = "sandbox", target_os = "linux"), feature = "container"))]
mod limits;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "openapi")]
mod openapi;
#[cfg(all(feature = "plugins", target_os = "linux"))]
pub(in crate::config) mod plugin;
#[cfg(all(any(feature = "container", feature = "e2b"), feature = "workspace"))]
mod sandbox;
mod served;
#[cfg(all(feature = "sandbox", target_os = "linux"))]
mod shell;
#[cfg(feature = "skills")]
mod skills;
#[cfg(feature = "web")]
mod web;
#[cfg(feature = "workspace")]
mod workspace;

use agent_tools::{AskUser, Finish};

use crate::config::{Registry, parts::knowledge, registry::Naming};

/// Adds all whose features are on.
pub(in crate::config) fn register(registry: Registry) -> Registry {
    let registry = registry.tool(AskUser::new()).tool(Finish::new()).tools_with("knowledge", knowledge::tools);
    let registry = registry.tools_with("served", served::tools).named("served", Naming::Tool);
    #[cfg(feature = "workspace")]
    let registry = registry.tools_with("workspace", workspace::tools).named("workspace", Naming::Set);
    #[cfg(all(feature = "sandbox", target_os = "linux"))]
    let registry = registry
        .tools_with("shell", shell::tools)
        .named("shell", Naming::Set)
        .tools_with("command", command::tools)
        .named("command", Naming::Tool);
    #[cfg(all(any(feature = "container", feature = "e2b"), feature = "workspace"))]
    let registry = registry.toolset_with("sandbox", sandbox::tools).named("sandbox", Naming::Set);
    #[cfg(feature = "skills")]
    let registry = registry.tools_with("skills", skills::tools);
    #[cfg(feature = "web")]
    let registry = registry
        .tools_with("web", web::tools)
        .named("web", Naming::Set)
        .tools_with("web_fetch", web::fetch)
        .tools_with("web_search", web::search);
    #[cfg(feature = "openapi")]
    let registry = registry.tools_with("openapi", openapi::tools).named("openapi", Naming::Set);
    #[cfg(all(feature = "plugins", target_os = "linux"))]
    let registry = registry.toolset_with("plugin", plugin::tools).named("plugin", Naming::Set);
    #[cfg(feature = "a2a")]
    let registry = registry.tools_with("a2a", a2a::tools).named("a2a", Naming::Tool);
    #[cfg(feature = "acp")]
    let registry = registry.tools_with("acp", acp::tools).named("acp", Naming::Tool);
    #[cfg(feature = "mcp")]
    let registry = registry.toolset_made("mcp", mcp::tools).named("mcp", Naming::Server);
    registry
}
