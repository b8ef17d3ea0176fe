//! Middleware with a single hook, made from closures.

use agent_core::{Flow, Middleware, ModelRequest, ModelResponse, Result, RunCx, ToolOutput, ToolRequest};
use async_trait::async_trait;

macro_rules! hook_fn {
    ($(#[$doc:meta])* $name:ident, $hook:ident($($arg:ident: $ty:ty),+) -> $out:ty) => {
        $(#[$doc])*
        pub fn $name<F>(name: &'static str, hook: F) -> impl Middleware
        where
            F: Fn(&RunCx, $($ty),+) -> Result<$out> + Send + Sync + 'static,
        {
            struct Hook<F> {
                name: &'static str,
                hook: F,
            }

            #[async_trait]
            impl<F> Middleware for Hook<F>
            where
                F: Fn(&RunCx, $($ty),+) -> Result<$out> + Send + Sync + 'static,
            {
                fn name(&self) -> &str {
                    self.name
                }

                async fn $hook(&self, cx: &RunCx, $($arg: $ty),+) -> Result<$out> {
                    (self.hook)(cx, $($arg),+)
                }
            }

            Hook { name, hook }
        }
    };
}

hook_fn!(
    /// Creates a middleware from a closure that runs
    /// [before each model call](Middleware::before_model).
    ///
    /// The closure is synchronous: for asynchronous work, use a [`Middleware`] or a layer of
    /// [`from_fn`](crate::from_fn()).
    ///
    /// ```
    /// use agent_core::{Flow, Message};
    /// use agent_middleware::before_model_fn;
    ///
    /// let reminder = before_model_fn("reminder", |cx, req| {
    ///     req.messages.push(Message::user(format!("This is step {}.", cx.step())))?;
    ///     Ok(Flow::Continue)
    /// });
    /// # use agent_core::Middleware;
    /// # assert_eq!(reminder.name(), "reminder");
    /// ```
    ///
    /// # Order
    ///
    /// ```text
    /// // right: the outer logger does not see the reminder, but the model does
    /// builder.middleware(Logging::new()).middleware(reminder)
    /// // wrong: outer hooks ran before the reminder was added, and may have counted too few tokens
    /// builder.middleware(token_guard).middleware(reminder)
    /// ```
    before_model_fn, before_model(req: &mut ModelRequest) -> Flow<ModelResponse>
);
hook_fn!(
    /// Creates a middleware from a closure that runs
    /// [after each model call](Middleware::after_model). Otherwise as [`before_model_fn`].
    after_model_fn, after_model(res: &mut ModelResponse) -> ()
);
hook_fn!(
    /// Creates a middleware from a closure that runs
    /// [before each tool call](Middleware::before_tool). Otherwise as [`before_model_fn`].
    ///
    /// ```
    /// use agent_core::{Flow, ToolOutput};
    /// use agent_middleware::before_tool_fn;
    ///
    /// let dry_run = before_tool_fn("dry_run", |_, req| {
    ///     Ok(Flow::Answer(ToolOutput::text(format!("would have run {}", req.call.name))))
    /// });
    /// # use agent_core::Middleware;
    /// # assert_eq!(dry_run.name(), "dry_run");
    /// ```
    before_tool_fn, before_tool(req: &mut ToolRequest) -> Flow<ToolOutput>
);
hook_fn!(
    /// Creates a middleware from a closure that runs
    /// [after each tool call](Middleware::after_tool). Otherwise as [`before_model_fn`].
    after_tool_fn, after_tool(req: &ToolRequest, out: &mut ToolOutput) -> ()
);
