//! Agents that others wrote. They need what is not here, so these tests run by hand; each says what it needs.

use agent::{
    Agent, RunRequest,
    tools::{
        Stdio,
        peers::{A2aAgent, AcpAgent, Permission},
    },
};
use serde_json::json;

use super::support::*;

/// An agent that was made with the Python package `a2a-sdk` (an `AgentExecutor` in an `A2AStarletteApplication`), at `A2A_AGENT`. Told
/// `ask`, it wants input; on `hang`, it works without end; any other message, and input, makes an artifact `you said ..`.
#[tokio::test]
#[ignore = "needs a server: A2A_AGENT=http://127.0.0.1:9999"]
async fn an_agent_made_with_the_python_sdk() {
    let url = std::env::var("A2A_AGENT").expect("A2A_AGENT is the agent's URL");
    let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let clerk = A2aAgent::builder(&url).allow_private(address).poll_every(ms(50)).build().expect("builds");
    let agent = Agent::of_tool("clerk", clerk).build().expect("builds");
    assert_eq!(finished(agent.run("hello").await).answer, "you said hello");
    let waits = interrupted(agent.run("ask").await);
    println!("{:?}", waits.questions[0].payload);
    let given = answers(&waits, &json!("Bern"));
    assert_eq!(finished(agent.start(RunRequest::resume(waits, given)).await).answer, "you said Bern");
    let run = agent.start(RunRequest::user("hang"));
    let handle = run.handle();
    let (end, ()) = tokio::join!(run, async {
        tokio::time::sleep(ms(500)).await;
        handle.cancel();
    });
    assert_eq!(end.expect("ends").as_str(), "cancelled");
    tokio::time::sleep(ms(500)).await; // the task is cancelled meanwhile, as the server says
}

/// An agent that was made with the crate `agent-client-protocol`, as the program `ACP_AGENT`: it asks for a permission when it receives
/// `ask`.
#[tokio::test]
#[ignore = "needs a program: ACP_AGENT=/path/to/agent"]
async fn an_agent_made_with_the_rust_sdk() {
    let path = std::env::var("ACP_AGENT").expect("ACP_AGENT is the agent's program");
    let coder = AcpAgent::builder(Stdio::new(&path)).build().expect("builds");
    let agent = Agent::of_tool("coder", coder).build().expect("builds");
    assert_eq!(finished(agent.run("hello").await).answer, "you said hello");
    let waits = interrupted(agent.run("ask").await);
    let given = answers(&waits, &json!("yes"));
    assert_eq!(finished(agent.start(RunRequest::resume(waits, given)).await).answer, "the answer: yes");
    let allowed = AcpAgent::builder(Stdio::new(path)).permissions(|_| Permission::Allow).build().expect("builds");
    let agent = Agent::of_tool("coder", allowed).build().expect("builds");
    assert_eq!(finished(agent.run("ask").await).answer, "the answer: yes");
}
