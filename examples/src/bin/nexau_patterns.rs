//! NexAU's patterns: agent initialisation, middleware registration, state access, and sub-agent
//! calls.

use agent::{
    Event, GlobalStorage, Key, SessionId,
    core::MemoryJournal,
    middleware::{Delegation, Events},
    prelude::*,
    testing::Turn,
};
use agent_examples::models::ModelArgs;
use clap::Parser;
use serde_json::json;

/// Writes about bees, with a researcher and a reviewer below it.
#[derive(Parser, Debug)]
struct Args {
    #[command(flatten)]
    model: ModelArgs,
}

/// State shared by all agents of the tree. It is stored with the session.
const NOTES: Key<Vec<String>> = Key::new("notes");
const MODEL_CALLS: Key<u32> = Key::new("model_calls");

/// Middleware that counts the model calls of all agents together.
struct Count;

#[async_trait]
impl Middleware for Count {
    fn name(&self) -> &str {
        "count"
    }

    async fn before_model(&self, cx: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        let calls = cx.globals().update(&MODEL_CALLS, |calls| calls.unwrap_or(0) + 1)?;
        println!("model call {calls}, by {}", cx.ids().path);
        Ok(Flow::Continue)
    }
}

/// Takes a note. (State access: the storage is filled in, and the model does not see it.)
#[tool]
fn note(globals: GlobalStorage, text: String) -> Result<String> {
    let notes = globals.update(&NOTES, move |notes| [notes.unwrap_or_default(), vec![text.clone()]].concat())?;
    Ok(format!("{} note(s) taken", notes.len()))
}

/// Has the notes reviewed. (A sub-agent call from code, by its key.)
#[tool(effect = "reconcilable")]
async fn review(req: ToolRequest) -> Result<String> {
    let notes = req.cx.globals().get(&NOTES)?.unwrap_or_default();
    let reviewed = req.call_sub_agent("reviewer", format!("Is this sound? {}", notes.join(" "))).await?;
    Ok(reviewed.answer)
}

fn show(event: &Event) {
    if let EventKind::ToolAnswered { name, output, .. } = &event.kind {
        println!("{name}: {}", output.to_text());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let script = [
        Turn::call("c1", "delegate", json!({"agent": "researcher", "message": "How do bees find their way home?"})),
        Turn::text("By the sun, and by landmarks."), // the researcher
        Turn::call("c2", "note", json!({"text": "Bees find home by the sun and by landmarks."})),
        Turn::call("c3", "review", json!({})),
        Turn::text("It is sound."), // the reviewer
        Turn::text("Bees find home by the sun and by landmarks; it was reviewed."),
    ];
    let model = Args::parse().model.or_script(script).await?;

    // Initialisation: the key of the registration is the name to use, whatever the agents' own
    // names.
    let researcher = Agent::builder("r-1", model.clone()).system("Answer in one sentence.").build()?;
    let reviewer = Agent::builder("r-2", model.clone()).system("Say whether it is sound, and why.").build()?;
    let globals = GlobalStorage::default();
    let writer = Agent::builder("writer", model)
        .system("Ask the researcher, take a note of what you learn, have it reviewed, and then answer.")
        .tool(note)
        .tool(review)
        .globals(globals.clone())
        .store(MemoryJournal::default())
        // Middleware registration: outermost first. `for_all` covers sub-agents too.
        .middleware(Events::new().on(show))
        .middleware_for_all(Count)
        .middleware(Delegation::new().to("researcher", "Finds things out.", researcher))
        .sub_agent("reviewer", "Says whether it is sound.", reviewer)
        .build()?;

    let request = RunRequest::user("How do bees find home?").session(SessionId::new("ada", "bees"));
    let end = writer.start(request).await?.finished().map_err(|_| Error::tool("the run was stopped"))?;
    println!("{}\nNotes: {:?}", end.answer, globals.get(&NOTES)?.unwrap_or_default());
    Ok(())
}
