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
    /// Store of chats: `memory`, or `sqlite:PATH`. Default: `memory`.
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
        StoreAddress::Postgres(_) => {
            Err(Error::config("the store of chats is 'memory' or 'sqlite:PATH'; PostgreSQL is the agent's own 'store'"))
        }
    }
}
