//! Tests of the kit itself: a seed reproduces its run, and violations are found.

use std::sync::Arc;

use agent_core::{
    Effect, Middleware, Result, RunCx, RunEnd, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, Usage,
    async_trait, testing::Outside, tool::Reconciled,
};
use serde_json::json;

use super::{Simulation, World};
use crate::Agent;

/// A tool with this effect.
struct Does(Effect);

#[async_trait]
impl Tool for Does {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("does", "", json!({"type": "object", "properties": {"n": {"type": "integer"}}}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(self.0)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        Ok(ToolOutput::text(format!("did {}", req.args["n"])))
    }
}

fn careful(world: &World) -> Result<Agent> {
    Agent::builder("a", world.model()).tool(world.tool(Does(Effect::AtMostOnce))).store(world.journal()).build()
}

#[test]
fn a_seed_gives_the_same_run_twice_and_another_seed_another() {
    let run = |seed| Simulation::new(seed).run(careful).expect("nothing breaks");
    let mut crashes = 0;
    for seed in 0..20 {
        let (one, two) = (run(seed), run(seed));
        assert_eq!(one.trace, two.trace, "seed {seed}");
        assert_eq!((one.processes, one.faults, one.questions), (two.processes, two.faults, two.questions));
        crashes += one.crashes;
    }
    assert!(crashes > 10, "processes die");
    assert_ne!(run(1).trace, run(2).trace);
}

/// A tool that declares itself repeatable, but has an effect that must not be repeated.
struct Liar(Outside);

#[async_trait]
impl Tool for Liar {
    fn spec(&self) -> ToolSpec {
        Does(Effect::Pure).spec()
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Reconcilable)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        Ok(ToolOutput::text(req.call.id.to_string()))
    }

    /// Answers without checking.
    async fn reconcile(&self, _: ToolRequest) -> Result<Reconciled> {
        Ok(Reconciled::DidNot)
    }
}

/// Checks on behalf of the inner tool.
struct Watched(Arc<Liar>);

#[async_trait]
impl Tool for Watched {
    fn spec(&self) -> ToolSpec {
        self.0.spec()
    }

    fn options(&self) -> ToolOptions {
        self.0.options()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let key = req.idempotency_key();
        let output = self.0.call(req).await?;
        self.0.0.happened(&key, Effect::Reconcilable, &output);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        Ok(output)
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        self.0.reconcile(req).await
    }
}

#[test]
fn a_tool_that_does_not_look_before_it_does_a_thing_again_is_found() {
    let broken = (0..40).find_map(|seed| {
        let build = |world: &World| {
            let tool = Watched(Arc::new(Liar(world.outside.clone())));
            Agent::builder("a", world.model()).tool(tool).store(world.journal()).build()
        };
        Simulation::new(seed).run(build).err()
    });
    let reason = broken.expect("one of the seeds finds it").reason;
    assert!(reason.starts_with("done twice in silence: "), "{reason}");
}

/// A hook that reports less usage than there was.
struct Hides;

#[async_trait]
impl Middleware for Hides {
    fn name(&self) -> &str {
        "hides"
    }

    async fn after_agent(&self, _: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        if let Ok(RunEnd::Finished(finished)) = end {
            finished.usage = Usage::default();
        }
        Ok(())
    }
}

#[test]
fn usage_that_does_not_add_up_is_found() {
    let build = |world: &World| Agent::builder("a", world.model()).middleware(Hides).store(world.journal()).build();
    let broken = Simulation::new(1).run(build).expect_err("it does not add up");
    assert!(broken.reason.starts_with("usage does not add up"), "{broken}");
}
