//! Live handles for tools and hooks.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use crate::error::{Error, Result};

/// Live handles (clients, pools, a sandbox), looked up by type. Never serialised, and never shown
/// to a model.
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

/// Name of the type, and the handle.
type Handle = (&'static str, Arc<dyn Any + Send + Sync>);

impl Resources {
    /// Adds a handle; it replaces one of the same type.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, handle: T) -> Self {
        Arc::make_mut(&mut self.0).insert(TypeId::of::<T>(), (type_name::<T>(), Arc::new(handle)));
        self
    }

    /// Returns the handle of type `T`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there is no such handle; the message
    /// names the missing type.
    pub fn get<T: Any + Send + Sync>(&self) -> Result<Arc<T>> {
        let found = self.0.get(&TypeId::of::<T>()).and_then(|(_, any)| any.clone().downcast().ok());
        let missing = || Error::config(format!("no resource of type {}: add it with .resource(..)", type_name::<T>()));
        found.ok_or_else(missing)
    }

    /// True if there are no handles.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Merges these handles with those of `other`, which win.
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
