//! Path by which generated code names `agent_tools`.

use proc_macro_crate::{FoundCrate, crate_name};
use quote::format_ident;
use syn::{Path, parse_quote};

/// Returns `agent_tools` if it is a dependency, otherwise its re-export in `agent`.
pub(crate) fn find() -> Path {
    let name = |package, own_name: &str| match crate_name(package) {
        Ok(FoundCrate::Name(name)) => Some(format_ident!("{name}")),
        // A package's tests, examples and documentation see its library under its own name.
        Ok(FoundCrate::Itself) => Some(format_ident!("{own_name}")),
        Err(_) => None,
    };
    if let Some(tools) = name("agent-tools", "agent_tools") {
        parse_quote!(::#tools)
    } else if let Some(agent) = name("agent", "agent") {
        parse_quote!(::#agent::tools)
    } else {
        parse_quote!(::agent_tools)
    }
}
