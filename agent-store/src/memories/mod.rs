//! Texts that are searched: implementations of [`MemoryStore`](agent_core::MemoryStore).

mod in_memory;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use self::in_memory::InMemoryMemoryStore;
#[cfg(feature = "sqlite")]
pub use self::sqlite::SqliteMemoryStore;

/// The words of a text, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}
