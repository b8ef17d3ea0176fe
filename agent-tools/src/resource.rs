//! [`Resource`]: a live handle as a parameter of a tool.

use std::{any::type_name, fmt, ops::Deref, sync::Arc};

/// Live handle of the run, as a parameter of a `#[tool]` function; hidden from the model.
///
/// ```
/// use std::sync::Arc;
///
/// use agent_tools::Resource;
///
/// struct Db {
///     name: &'static str,
/// }
///
/// let db = Resource(Arc::new(Db { name: "main" }));
/// assert_eq!(db.name, "main");
/// ```
pub struct Resource<T>(pub Arc<T>);

impl<T> Deref for Resource<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Clone for Resource<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for Resource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resource<{}>", type_name::<T>()) // handles may hold secrets
    }
}
