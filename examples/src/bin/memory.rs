//! Long-term memory of a user across conversations, beside the history of a session.

use agent::{middleware::LongTermMemory, prelude::*, store::InMemoryMemoryStore, testing::Turn};
use agent_examples::models;

/// Asks for a user in a separate conversation, and prints the answer.
async fn ask(waiter: &Agent, user: &str, question: &str) -> Result<()> {
    println!("{user}: {question}");
    // The request names the owner of the memories, never the model.
    let end = waiter.start(RunRequest::user(question).on_behalf_of(user)).await?;
    let end = end.finished().map_err(|_| Error::tool("the run was stopped"))?;
    println!("waiter: {}\n", end.answer);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let model = models::or_script([
        Turn::text("I shall remember that."),
        Turn::text("Take the apple cake: there are no nuts in it."),
        Turn::text("Take the walnut cake, it is our best."),
    ]);
    // A custom store implements `MemoryStore`: a database, a search index, a service.
    let store = InMemoryMemoryStore::default();
    let waiter = Agent::builder("waiter", model.await?)
        .system("You are a waiter. Answer in one sentence.")
        // Memories that match the question are shown to the model in each call, and never become
        // part of the conversation. By default the exchange is stored; with `.facts_with(model)`,
        // the facts that a model extracts.
        .middleware(LongTermMemory::new(store.clone()))
        .build()?;

    ask(&waiter, "ada", "I cannot eat walnuts, they make me ill.").await?;
    ask(&waiter, "ada", "Which cake can I eat: apple or walnut?").await?;
    ask(&waiter, "bob", "Which cake can I eat: apple or walnut?").await?;
    Ok(())
}
