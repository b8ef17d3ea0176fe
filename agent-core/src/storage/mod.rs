//! Data of runs besides the conversation: the storage that a whole tree of runs shares
//! ([`GlobalStorage`]), the [`State`] of one run with its [schema](StateSchema), and live handles
//! ([`Resources`]), which are not persisted.
//!
//! Authors of tools and middlewares identify their data by a [`Key`].
//!
//! ```
//! use agent_core::storage::{GlobalStorage, Key};
//!
//! const FOUND: Key<Vec<String>> = Key::new("found");
//!
//! let storage = GlobalStorage::default();
//! storage.update(&FOUND, |found| [found.unwrap_or_default(), vec!["a.rs".to_owned()]].concat())?;
//! assert_eq!(storage.snapshot()["found"], serde_json::json!(["a.rs"]));
//! # Ok::<(), agent_core::Error>(())
//! ```

mod global;
mod merge;
mod nested;
mod resources;
mod slot;
mod slots;
mod state;
mod transaction;
mod writer;

use std::{fmt, marker::PhantomData};

pub use self::{
    global::GlobalStorage,
    merge::Merge,
    resources::Resources,
    state::{State, StateField, StateSchema},
    transaction::Transaction,
};
pub(crate) use self::{
    merge::deep_fields,
    writer::{CallStorage, NewValue},
};

/// Name and type of a stored value. Declare keys as `const`s.
///
/// ```
/// use agent_core::{GlobalStorage, Key};
///
/// const VISITS: Key<u32> = Key::new("visits");
///
/// let storage = GlobalStorage::default();
/// storage.update(&VISITS, |n| n.unwrap_or(0) + 1)?;
/// assert_eq!(storage.get(&VISITS)?, Some(1));
/// # Ok::<(), agent_core::Error>(())
/// ```
pub struct Key<T> {
    name: &'static str,
    of: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    /// Creates a key with this name.
    pub const fn new(name: &'static str) -> Self {
        Self { name, of: PhantomData }
    }

    /// Name of the key.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key<{}>({})", std::any::type_name::<T>(), self.name)
    }
}
