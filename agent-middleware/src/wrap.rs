//! `wrap_*` hooks of middlewares that are often inactive.

/// Generates a `wrap_*` hook whose body returns the future. An async-trait hook allocates its own
/// future in every call; this one can return the future of `next` without a cost.
macro_rules! wrap {
    ($hook:ident($self:ident, $req:ident: $Request:ident, $next:ident: $Next:ident) -> $Answer:ident $body:block) => {
        fn $hook<'life0, 'life1, 'async_trait>(
            &'life0 $self,
            $req: agent_core::$Request,
            $next: agent_core::$Next<'life1>,
        ) -> agent_core::BoxFuture<'async_trait, agent_core::Result<agent_core::$Answer>>
        where
            'life0: 'async_trait,
            'life1: 'async_trait,
            Self: 'async_trait,
        $body
    };
}
pub(crate) use wrap;
