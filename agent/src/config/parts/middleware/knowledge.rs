//! `knowledge`: passages of documents that fit the question.

use agent_middleware::{Knowledge, memory::KnowledgeConfig};

use super::{beside, read, split};
use crate::config::{Registry, parts::knowledge::LibraryConfig};

const NAME: &str = "knowledge";

pub(super) fn register(registry: Registry) -> Registry {
    registry.middleware_made(
        NAME,
        |generator| beside::<LibraryConfig>(generator.subschema_for::<KnowledgeConfig>(), generator),
        |config, _| {
            let (own, config) = split::<LibraryConfig>(NAME, config)?;
            Ok(Knowledge::new(own.retriever()?).config(read(NAME, config)?))
        },
    )
}
