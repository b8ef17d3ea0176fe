//! `bash_output`, `bash_input` and `kill_bash`.

use std::{sync::Arc, time::Duration};

use agent_core::{Effect, Error, Result, Tool, ToolOutput, ToolRequest, message::Part};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::task::Tasks;
use crate::{ToolExt, from_fn};

/// Maximum time that a model may wait for output.
const LONGEST: Duration = Duration::from_secs(60);

/// Time that a killed command has to end.
const ENDING: Duration = Duration::from_secs(5);

#[derive(Deserialize, JsonSchema)]
struct OutputArgs {
    /// The command's id, as bash gave it.
    bash_id: String,
    /// Milliseconds to wait for the first output. Default: 0.
    #[schemars(range(max = 60_000))]
    wait: Option<u64>,
}

pub(super) fn output(tasks: Arc<Tasks>) -> impl Tool {
    let description =
        "Gives what a command in the background has written since it was last asked, and whether it still runs.";
    from_fn("bash_output", description, move |args: OutputArgs, req: ToolRequest| {
        let tasks = tasks.clone();
        async move {
            let wait = Duration::from_millis(args.wait.unwrap_or(0)).min(LONGEST);
            tasks.find(&args.bash_id, &req.cx)?.news(wait).await;
            read(&tasks, &args.bash_id, &req)
        }
    })
    .with_options(|o| o.effect(Effect::Idempotent))
}

#[derive(Deserialize, JsonSchema)]
struct InputArgs {
    /// The command's id, as bash gave it.
    bash_id: String,
    /// Text for its standard input; a line needs its line feed.
    text: String,
    /// Ends its input after that.
    #[serde(default)]
    end: bool,
}

pub(super) fn input(tasks: Arc<Tasks>) -> impl Tool {
    let description = "Writes to the standard input of a command in the background.";
    from_fn("bash_input", description, move |args: InputArgs, req: ToolRequest| {
        let tasks = tasks.clone();
        async move {
            tasks.find(&args.bash_id, &req.cx)?.write(args.text, args.end).await?;
            Ok::<_, Error>("written")
        }
    })
    .with_options(agent_core::ToolOptions::serial)
}

#[derive(Deserialize, JsonSchema)]
struct KillArgs {
    /// The command's id, as bash gave it.
    bash_id: String,
}

pub(super) fn kill(tasks: Arc<Tasks>) -> impl Tool {
    let description = "Ends a command in the background, with all that it started, and gives the rest of its output.";
    from_fn("kill_bash", description, move |args: KillArgs, req: ToolRequest| {
        let tasks = tasks.clone();
        async move {
            let task = tasks.find(&args.bash_id, &req.cx)?;
            task.kill();
            task.end(ENDING).await;
            read(&tasks, &args.bash_id, &req)
        }
    })
    .with_options(|o| o.effect(Effect::Idempotent))
}

fn read(tasks: &Tasks, id: &str, req: &ToolRequest) -> Result<ToolOutput> {
    let (said, ended) = tasks.find(id, &req.cx)?.read();
    let status = match ended {
        None => "it runs".to_owned(),
        Some(exit) => {
            tasks.forget(id, &req.cx);
            exit.map_or("it has ended".to_owned(), |exit| exit.to_string())
        }
    };
    let shown = format!("{}\n[{status}]", said.trim_end_matches('\n'));
    let exit = ended.flatten().and_then(|exit| exit.code);
    let value = json!({"output": said, "running": ended.is_none(), "exit_code": exit});
    Ok(ToolOutput::value(value).shown_as(vec![Part::text(shown.trim_start_matches('\n'))]))
}
