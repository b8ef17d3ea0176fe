//! The `wrap_*` hooks of middlewares that often have nothing to do.

/// Writes `wrap_model_call` and `wrap_tool_call` of two expressions that give futures. A hook of async-trait's has a future
/// of its own in every call; these may hand on that of `next`, and then cost nothing.
macro_rules! wraps {
    (|$self:ident, $req:ident, $next:ident| model $model:block tool $tool:block) => {
        fn wrap_model_call<'life0, 'life1, 'async_trait>(
            &'life0 $self,
            $req: agent_core::ModelRequest,
            $next: agent_core::ModelNext<'life1>,
        ) -> agent_core::BoxFuture<'async_trait, agent_core::Result<agent_core::ModelResponse>>
        where
            'life0: 'async_trait,
            'life1: 'async_trait,
            Self: 'async_trait,
        $model

        fn wrap_tool_call<'life0, 'life1, 'async_trait>(
            &'life0 $self,
            $req: agent_core::ToolRequest,
            $next: agent_core::ToolNext<'life1>,
        ) -> agent_core::BoxFuture<'async_trait, agent_core::Result<agent_core::ToolOutput>>
        where
            'life0: 'async_trait,
            'life1: 'async_trait,
            Self: 'async_trait,
        $tool
    };
}
pub(crate) use wraps;
