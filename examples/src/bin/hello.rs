//! Minimal agent: a model, a system prompt, one question.

use agent::{prelude::*, testing::Turn};
use agent_examples::models;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // In your application: `agent::llm::model("openai:gpt-5").build()?`, which reads its key from
    // the environment.
    let model = models::or_script([Turn::text("Hello, Ada! What are we building today?")]).await?;

    let agent = Agent::builder("greeter", model).system("Greet whoever talks to you, in one sentence.").build()?;

    // A run does not always finish: it may be cancelled, or wait for a person. The compiler
    // requires all cases to be handled.
    match agent.run("Hi, I am Ada.").await? {
        RunEnd::Finished(end) => println!("{} ({} tokens)", end.answer, end.usage.total()),
        other => println!("The run was {}.", other.as_str()),
    }
    Ok(())
}
