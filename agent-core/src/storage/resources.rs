//! Live handles that tools and hooks need.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use crate::error::{Error, Result};

/// Live handles (clients, pools, a sandbox), found by their type. Never serialised, never shown to a model.
///
/// ```
/// use agent_core::Resources;
///
/// struct Db(&'static str);
///
/// let resources = Resources::default().with(Db("main"));
/// assert_eq!(resources.get::<Db>()?.0, "main");
/// assert!(resources.get::<String>().is_err());
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Resources(Arc<HashMap<TypeId, Handle>>);

/// The type's name, and the handle.
type Handle = (&'static str, Arc<dyn Any + Send + Sync>);

impl Resources {
    /// Adds a handle; another one of the same type is replaced.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, handle: T) -> Self {
        Arc::make_mut(&mut self.0).insert(TypeId::of::<T>(), (type_name::<T>(), Arc::new(handle)));
        self
    }

    /// The handle of type `T`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there is none; the message says which type to add.
    pub fn get<T: Any + Send + Sync>(&self) -> Result<Arc<T>> {
        let found = self.0.get(&TypeId::of::<T>()).and_then(|(_, any)| any.clone().downcast().ok());
        let missing = || Error::config(format!("no resource of type {}: add it with .resource(..)", type_name::<T>()));
        found.ok_or_else(missing)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These handles and those of `other`, which win.
    #[must_use]
    pub fn extended(mut self, other: &Self) -> Self {
        if !other.0.is_empty() {
            Arc::make_mut(&mut self.0).extend(other.0.iter().map(|(k, v)| (*k, v.clone())));
        }
        self
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.values().map(|(name, _)| name)).finish()
    }
}
