//! Configurations that cannot work are refused when the agent is built, with a hint on what to
//! change.

use std::sync::Arc;

use agent_core::{
    ErrorKind, Middleware, ModelInfo, Placement, RunCx, StateField, StateSchema, Tool, Toolset, async_trait,
    testing::{HookTrace, ScriptedModel},
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::{Value, json};

use crate::common::{double, gives};

fn agent() -> AgentBuilder {
    Agent::builder("a", ScriptedModel::new([]))
}

fn without_tools() -> AgentBuilder {
    Agent::builder("a", ScriptedModel::new([]).with_info(ModelInfo::new("old").without_tools()))
}

/// Returns the error that `build` returns.
fn refusal(builder: AgentBuilder) -> String {
    let e = builder.build().expect_err("cannot work");
    assert_eq!(e.kind(), ErrorKind::Config);
    e.message().to_owned()
}

struct NoTools;

#[async_trait]
impl Toolset for NoTools {
    async fn tools(&self, _: &RunCx) -> agent_core::Result<Vec<Arc<dyn Tool>>> {
        Ok(Vec::new())
    }
}

/// A middleware that only declares its placement and a tool.
#[derive(Default)]
struct Stands {
    name: &'static str,
    placement: Placement,
    tool: Option<&'static str>,
}

#[async_trait]
impl Middleware for Stands {
    fn name(&self) -> &str {
        self.name
    }

    fn placement(&self) -> Placement {
        self.placement.clone()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tool.iter().map(|name| Arc::new(double(name)) as _).collect()
    }
}

fn stands(name: &'static str, placement: Placement) -> Stands {
    Stands { name, placement, tool: None }
}

// --- exits ---

// Haystack 14
#[test]
fn an_exit_that_no_tool_can_meet_is_refused_with_those_that_can_be() {
    let message = refusal(agent().tool(double("f")).exit_on(["zz"]));
    assert_eq!(message, "exit condition 'zz' can never be met; valid: text, f");
    for met in ["f", "text"] {
        assert!(agent().tool(double("f")).exit_on([met]).build().is_ok());
    }
}

// Haystack 14
#[test]
fn an_exit_that_a_tool_may_meet_later_is_accepted() {
    assert!(agent().toolset(NoTools).exit_on(["zz"]).build().is_ok());
}

// --- tools ---

// Haystack 15
#[test]
fn tools_on_a_model_that_takes_none_are_refused() {
    assert!(without_tools().build().is_ok());
    let brings = Stands { name: "brings", tool: Some("f"), ..Stands::default() };
    for builder in
        [without_tools().tool(double("f")), without_tools().toolset(NoTools), without_tools().middleware(brings)]
    {
        assert!(refusal(builder).starts_with("model 'old' takes no tools"));
    }
}

// Haystack 41
#[test]
fn two_tools_of_one_name_are_refused_wherever_they_come_from() {
    let set = || ["f", "g"].map(|name| Arc::new(double(name)) as Arc<dyn Tool>);
    let brings = Stands { name: "brings", tool: Some("g"), ..Stands::default() };
    for builder in [agent().tool(double("g")).tools(set()), agent().tools(set()).middleware(brings)] {
        assert!(refusal(builder).starts_with("two tools are named 'g'"));
    }
    assert!(refusal(agent().tools(set()).tools(set())).starts_with("two tools are named 'f'"));
}

#[test]
fn a_tool_that_no_provider_would_take_is_refused() {
    for (name, parameters) in [
        ("", json!({"type": "object"})),
        ("with space", json!({"type": "object"})),
        ("f", json!({"type": "array"})),
        ("f", json!({"type": "nonsense"})),
    ] {
        struct Odd(&'static str, Value);

        #[async_trait]
        impl Tool for Odd {
            fn spec(&self) -> agent_core::ToolSpec {
                agent_core::ToolSpec::new(self.0, "", self.1.clone())
            }

            async fn call(&self, _: agent_core::ToolRequest) -> agent_core::Result<agent_core::ToolOutput> {
                unreachable!("the agent is never built")
            }
        }

        let message = refusal(agent().tool(Odd(name, parameters)));
        assert!(message.starts_with("invalid ") && message.contains(&format!("'{name}'")), "{message}");
    }
}

// NexAU 19
#[test]
fn an_argument_that_the_framework_itself_gives_cannot_be_given_by_the_agent() {
    for reserved in ["cx", "state", "globals", "resources"] {
        let message = refusal(agent().tool(gives("f", json!(1)).with(|o| o.arg(reserved, 1))));
        assert!(message.contains(&format!("'{reserved}', which is reserved")), "{message}");
    }
}

// --- state ---

// Haystack 20, 25
#[test]
fn a_key_of_state_that_cannot_be_used_is_refused() {
    let with = |name: &str, field| refusal(agent().state(StateSchema::default().key(name, field)));
    assert!(with("x", StateField::default()).contains("'x' has no type"));
    assert!(with("messages", StateField::of::<Vec<Value>>()).contains("'messages' is reserved"));
    assert!(with("x", StateField::of::<u32>().default_value(json!("a"))).contains("'x' does not fit"));
    assert!(with("x", StateField::schema(json!({"type": "nonsense"}))).contains("'x'"));
    let unfit = StateField::schema(json!({"type": "integer"})).default_value(json!("a"));
    assert!(with("x", unfit).contains("'x' does not fit"));
}

// Haystack 30 (B)
#[test]
fn a_tool_that_reads_or_writes_what_is_not_there_is_refused() {
    let with = |tool| refusal(agent().state(StateSchema::default().key("k", StateField::of::<u32>())).tool(tool));
    let f = || double("f");
    assert_eq!(
        with(f().with(|o| o.writes("zz", None))),
        "tool 'f' writes state key 'zz', which is not declared: declare it with state(..), or name one of those that are: k"
    );
    assert_eq!(
        with(f().with(|o| o.reads("zz", "x"))),
        "tool 'f' reads state key 'zz', which is not declared: declare it with state(..), or name one of those that are: k"
    );
    assert_eq!(
        refusal(agent().tool(f().with(|o| o.writes("zz", None)))),
        "tool 'f' writes state key 'zz', which is not declared: declare it with state(..), or name one of those that are: none"
    );
    assert_eq!(
        with(f().with(|o| o.reads("k", "zz"))),
        "tool 'f' reads state into parameter 'zz', which its schema does not have"
    );
}

// --- limits and names ---

#[test]
fn limits_that_let_nothing_run_and_names_that_name_nothing_are_refused() {
    assert!(refusal(agent().tool_concurrency(0)).contains("tool_concurrency must be at least 1"));
    assert!(refusal(agent().tool(double("f").with(|o| o.concurrency(0)))).contains("must be at least 1"));
    assert!(refusal(Agent::builder(" ", ScriptedModel::new([]))).contains("needs a name"));
}

#[test]
fn two_sub_agents_under_one_key_are_refused() {
    let helper = || agent().build().expect("builds");
    let builder = agent().sub_agent("h", "helps", helper()).sub_agent("h", "helps too", helper());
    assert_eq!(refusal(builder), "two sub-agents have the key 'h': rename one");
}

// --- the order of middlewares ---

// Haystack 50
#[test]
fn middlewares_in_an_order_that_cannot_work_are_refused() {
    let order = Placement::default;
    for (first, second, problem) in [
        (stands("m", order().requires("x")), stands("n", order()), "middleware 'm' requires 'x', which is not there"),
        (stands("m", order().conflicts("n")), stands("n", order()), "middleware 'm' conflicts with 'n'"),
        (stands("n", order()), stands("m", order().outside("n")), "middleware 'm' must be outside 'n'"),
        (stands("m", order().inside("n")), stands("n", order()), "middleware 'm' must be inside 'n'"),
        (stands("m", order().unique()), stands("m", order()), "middleware 'm' is registered twice"),
    ] {
        let message = refusal(agent().middleware(first).middleware(second));
        assert!(message.starts_with(problem), "{message}");
    }
}

#[test]
fn middlewares_in_an_order_that_works_are_accepted() {
    let order = Placement::default;
    let outer = stands("outer", order().outside("inner").requires("inner").conflicts("other").unique());
    let inner = stands("inner", order().inside("outer").outside("absent").inside("absent"));
    assert!(agent().middleware(outer).middleware(inner).build().is_ok());
}

// --- description ---

#[test]
fn an_agent_explains_its_stacks_tools_and_limits() {
    let builder = agent()
        .middleware(HookTrace::new("outer"))
        .model_layer(tower::timeout::TimeoutLayer::new(crate::common::ms(1)))
        .middleware(HookTrace::new("inner"))
        .tool(double("f"))
        .max_steps(7);
    let expected = "\
agent a on scripted
model call:
  hooks, once per call: outer -> inner
  once per attempt: outer -> TimeoutLayer -> inner -> journal -> model
tool call:
  hooks, once per call: outer -> inner
  once per attempt: outer -> inner -> checks -> journal -> tool
tools: f
limits: 7 steps, 16 tools at once, 1048576 bytes of tool output
";
    assert_eq!(builder.build().expect("builds").explain(), expected);
}
