//! Streams an answer to the terminal, with the activity of tools.

use std::{
    io::{Write, stdout},
    time::Duration,
};

use agent::{core::Chunk, prelude::*, testing::Turn};
use agent_examples::models;
use futures::StreamExt;
use serde_json::json;

/// Says what the weather is like in a city.
#[tool(effect = "pure")]
async fn weather(city: String) -> String {
    format!("{city}: 21 degrees, a light wind from the west")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let answer = "It is a fine day in Bern: 21 degrees, with a light wind. Take a jacket for the evening.";
    let model = models::or_script([
        Turn::call("c1", "weather", json!({"city": "Bern"})),
        Turn::text(answer).delay(Duration::from_millis(30)), // simulates typing speed
    ]);
    let agent = Agent::builder("forecaster", model.await?).tool(weather).streaming(true).build()?;

    // A run is a stream of events; reading it drives the run.
    let mut run = agent.start(RunRequest::user("What is the weather like in Bern?"));
    while let Some(event) = run.next().await {
        match event.kind {
            EventKind::Chunk(Chunk::Text { delta, .. }) => {
                print!("{delta}");
                stdout().flush().map_err(|e| Error::tool("the terminal is closed").with_source(e))?;
            }
            // The model call failed midway and restarts: discard the text of this message.
            EventKind::Chunk(Chunk::Restart) => println!("\n(once more)"),
            EventKind::ToolStarted { name, .. } => println!("[{name} ..]"),
            EventKind::ToolAnswered { name, output, .. } => println!("[{name}: {}]", output.to_text()),
            _ => {}
        }
    }
    println!();

    // When the stream has ended, the run returns its outcome.
    if let RunEnd::Finished(end) = run.await? {
        println!("({} steps, {} tokens)", end.steps, end.usage.total());
    }
    Ok(())
}
