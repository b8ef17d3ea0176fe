//! `chat_history`: conversations of a store of their own.

use agent_core::{Error, Result};
use agent_middleware::{ChatHistory, memory::ChatHistoryConfig};
use agent_store::InMemoryChatMessageStore;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{beside, read, split};
use crate::config::{Registry, StoreAddress};

const NAME: &str = "chat_history";

#[derive(Deserialize, JsonSchema)]
#[serde(default)]
#[derive(Default)]
struct Kept {
    /// Where chats are kept: `memory`, or `sqlite:PATH`. Default: `memory`.
    store: StoreAddress,
}

pub(super) fn register(registry: Registry) -> Registry {
    registry.middleware_made(
        NAME,
        |generator| beside::<Kept>(generator.subschema_for::<ChatHistoryConfig>(), generator),
        |config, _| {
            let (own, config) = split::<Kept>(NAME, config)?;
            Ok(opened(&own.store)?.config(read(NAME, config)?))
        },
    )
}

fn opened(store: &StoreAddress) -> Result<ChatHistory> {
    match store {
        StoreAddress::Memory => Ok(ChatHistory::new(InMemoryChatMessageStore::default())),
        #[cfg(feature = "sqlite")]
        StoreAddress::Sqlite(path) => Ok(ChatHistory::new(agent_store::SqliteChatMessageStore::open(path)?)),
        #[cfg(not(feature = "sqlite"))]
        StoreAddress::Sqlite(_) => Err(store.off()),
        StoreAddress::Postgres(_) => Err(Error::config(
            "chats are kept in memory or in SQLite; an agent whose own store is PostgreSQL has its conversations there",
        )),
    }
}
