//! Setters shared by builders.

/// Generates setters for parts that a builder holds in an `Arc`, or in an `Option` of one.
macro_rules! part_setters {
    ($($(#[$doc:meta])* $part:ident: $kind:path;)+) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $part(mut self, $part: impl $kind) -> Self {
            let part: std::sync::Arc<dyn $kind> = std::sync::Arc::new($part);
            self.$part = part.into();
            self
        }
    )+};
}

pub(crate) use part_setters;
