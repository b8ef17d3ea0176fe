//! The agent: tools for files and commands, and the tests as the condition of the end.

use agent::{
    Model,
    middleware::{ContextCompaction, LongToolOutput},
    prelude::*,
    tools::{Shell, Workspace, sandbox::LocalSandbox},
};

use crate::verify::{TestCommand, TestsPass};

const PROMPT: &str = "\
You repair code in a repository. Run its tests first, read the code that fails and the tests that fail, and change as \
little as possible. Run the tests again before you say that you are done, and say in two sentences what was wrong. \
Commands run in a sandbox without a network.";

/// Builds the agent over the directory of a sandbox.
pub(crate) fn build(model: impl Model, sandbox: &LocalSandbox, test: &TestCommand) -> Result<Agent> {
    Agent::builder("coder", model)
        .system(PROMPT)
        .tools(Workspace::open(sandbox.path())?.tools())
        .tools(Shell::over(sandbox.clone()).tools()?)
        .middleware(TestsPass(test.clone()))
        .middleware(ContextCompaction::new())
        .middleware(LongToolOutput::new())
        .max_steps(60)
        .build()
}
