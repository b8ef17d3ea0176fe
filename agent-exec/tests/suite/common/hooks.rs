//! Middlewares with a single hook, made from a closure and named after the hook.

use agent_core::{
    Chunk, Exit, Flow, Middleware, ModelRequest, ModelResponse, Result, RunCx, RunEnd, ToolBatch, ToolOutput,
    ToolRequest, ToolResults, Verdict, async_trait, middleware::ChunkHook,
};

macro_rules! hook {
    ($hook:ident($($arg:ident: $ty:ty),*) -> $out:ty) => {
        pub(crate) fn $hook(hook: impl Fn(&RunCx, $($ty),*) -> Result<$out> + Send + Sync + 'static) -> impl Middleware {
            struct Hook<F>(F);

            #[async_trait]
            impl<F: Fn(&RunCx, $($ty),*) -> Result<$out> + Send + Sync + 'static> Middleware for Hook<F> {
                fn name(&self) -> &str {
                    stringify!($hook)
                }

                async fn $hook(&self, cx: &RunCx, $($arg: $ty),*) -> Result<$out> {
                    (self.0)(cx, $($arg),*)
                }
            }

            Hook(hook)
        }
    };
}

hook!(before_agent() -> ());
hook!(after_agent(end: &mut Result<RunEnd>) -> ());
hook!(before_model(req: &mut ModelRequest) -> Flow<ModelResponse>);
hook!(after_model(res: &mut ModelResponse) -> ());
hook!(before_tools(batch: &mut ToolBatch) -> ());
hook!(after_tools(results: &mut ToolResults) -> Verdict);
hook!(before_tool(req: &mut ToolRequest) -> Flow<ToolOutput>);
hook!(after_tool(req: &ToolRequest, out: &mut ToolOutput) -> ());
hook!(on_exit(exit: &mut Exit) -> Verdict);

pub(crate) fn stream_chunk(
    hook: impl Fn(&RunCx, Chunk) -> Result<Option<Chunk>> + Send + Sync + 'static,
) -> impl Middleware {
    struct Hook<F>(F);

    impl<F: Fn(&RunCx, Chunk) -> Result<Option<Chunk>> + Send + Sync + 'static> Middleware for Hook<F> {
        fn name(&self) -> &str {
            "stream_chunk"
        }

        fn chunk_hook(&self) -> Option<&dyn ChunkHook> {
            Some(self)
        }
    }

    impl<F: Fn(&RunCx, Chunk) -> Result<Option<Chunk>> + Send + Sync + 'static> ChunkHook for Hook<F> {
        fn stream_chunk(&self, cx: &RunCx, chunk: Chunk) -> Result<Option<Chunk>> {
            (self.0)(cx, chunk)
        }
    }

    Hook(hook)
}
