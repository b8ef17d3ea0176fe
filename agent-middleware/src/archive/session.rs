//! [`SessionArchive`].

use agent_core::{GlobalStorage, Result, RunCx};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::{Archive, Archived, Hit, find, off_thread};

/// Archive in the storage that the session shares: journalled with the step that archived the text,
/// and restored after a restart. It enlarges the session's storage: for long sessions, implement
/// [`Archive`] on a separate store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionArchive;

impl SessionArchive {
    /// Creates the archive.
    pub fn new() -> Self {
        Self
    }

    fn shelf(cx: &RunCx) -> GlobalStorage {
        cx.globals().scope("archive").scope(&cx.ids().agent_id)
    }
}

#[async_trait]
impl Archive for SessionArchive {
    async fn put(&self, cx: &RunCx, texts: Vec<Archived>) -> Result<()> {
        let shelf = Self::shelf(cx);
        for text in texts {
            if shelf.get_value(&text.handle).is_none() {
                shelf.set_value(&text.handle, json!(text));
            }
        }
        Ok(())
    }

    async fn get(&self, cx: &RunCx, handle: &str) -> Result<Option<Archived>> {
        let value = Self::shelf(cx).get_value(handle);
        Ok(value.and_then(|value| Archived::deserialize(&*value).ok()))
    }

    async fn search(&self, cx: &RunCx, query: &str, most: usize) -> Result<Vec<Hit>> {
        let (all, query) = (Self::shelf(cx).snapshot(), query.to_owned());
        let look = move || {
            let texts: Vec<_> = all.into_values().filter_map(|value| Archived::deserialize(value).ok()).collect();
            find(&query, most, texts.iter())
        };
        off_thread(look).await
    }
}
