//! Middleware by name.

use std::sync::Arc;

use agent_middleware::Builtin;

use crate::config::Registry;

/// Adds those that a configuration makes.
pub(in crate::config) fn register(mut registry: Registry) -> Registry {
    for builtin in Builtin::all() {
        let name = builtin.name();
        registry.middlewares.insert(name.to_owned(), Arc::new(|generator| builtin.schema(generator)));
        registry.parts = registry
            .parts
            .middleware_by(name, |config, from| builtin.make(config.clone(), from.model, from.sub_agents));
    }
    registry
}
