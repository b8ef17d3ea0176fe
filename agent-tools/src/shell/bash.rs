//! `bash`.

use std::{sync::Arc, time::Duration};

use agent_core::{
    Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait, message::Part, run::new_id,
};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::{
    Shell,
    task::Tasks,
    transcript::{Transcript, WHOLE},
};
use crate::{
    sandbox::{Command, Exit},
    schema,
};

#[derive(Deserialize, JsonSchema)]
struct BashArgs {
    /// The command line.
    command: String,
    /// Milliseconds after which it is ended.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// Purpose of the command, in five to ten words, for people.
    #[serde(default)]
    #[expect(dead_code, reason = "it is for those who look at the call")]
    description: Option<String>,
    /// Starts it and goes on at once: bash_output reads what it writes, until kill_bash ends it.
    #[serde(default)]
    run_in_background: bool,
}

/// Runs a command line.
pub(super) struct Bash {
    shell: Shell,
    tasks: Arc<Tasks>,
}

/// End of a command, for the model.
enum Ended {
    With(Exit),
    Late(Duration),
}

impl Bash {
    pub(super) fn new(shell: Shell, tasks: Arc<Tasks>) -> Self {
        Self { shell, tasks }
    }

    async fn run(&self, command: Command, longest: Duration, req: &ToolRequest) -> Result<ToolOutput> {
        let mut process = self.shell.sandbox.start(command).await?;
        drop(process.take_input());
        let mut said = Transcript::new(self.shell.limits.output, WHOLE);
        let ended = {
            let run = async {
                while let Some(piece) = process.output().await {
                    if req.cx.is_observed() {
                        req.progress(String::from_utf8_lossy(&piece));
                    }
                    said.push(&piece);
                }
                process.exit().await
            };
            match timeout_at(Instant::now() + longest, run).await {
                Ok(exit) => Ended::With(exit?),
                Err(_) => Ended::Late(longest),
            }
        };
        drop(process); // a late process is killed
        self.report(&said, &ended).await
    }

    async fn report(&self, said: &Transcript, ended: &Ended) -> Result<ToolOutput> {
        let sandbox = &self.shell.sandbox;
        let file = if said.is_too_long() {
            // Another shell, or another process, may use the same sandbox.
            let file = format!("{}/output-{}.txt", sandbox.temp_dir(), new_id());
            sandbox.write(&file, Bytes::copy_from_slice(said.whole())).await.is_ok().then_some(file)
        } else {
            None
        };
        let mut shown = said.shown(file.as_deref());
        let note = match ended {
            Ended::With(exit) if exit.is_success() => None,
            Ended::With(exit) => Some(exit.to_string()),
            Ended::Late(longest) => Some(format!(
                "ended after {} ms: it took too long; give it a longer timeout, or run it in the background",
                longest.as_millis()
            )),
        };
        if let Some(note) = note {
            if !shown.is_empty() && !shown.ends_with('\n') {
                shown.push('\n');
            }
            shown.push_str(&format!("[{note}]"));
        } else if shown.trim().is_empty() {
            shown = "[no output]".to_owned();
        }
        let exit = match ended {
            Ended::With(exit) => exit.code,
            Ended::Late(_) => None,
        };
        let value = json!({"exit_code": exit, "output": shown, "file": file});
        let output = ToolOutput::value(value).shown_as(vec![Part::text(shown.trim_end_matches('\n'))]);
        Ok(if matches!(ended, Ended::Late(_)) { output.failed() } else { output })
    }
}

#[async_trait]
impl Tool for Bash {
    fn spec(&self) -> ToolSpec {
        let limits = &self.shell.limits;
        let description = format!(
            "Runs a command line in a sandbox and gives its output, standard error included. Each call is a shell of its own in the root of \
             the sandbox: a directory or a variable that one sets is gone in the next. It reads no input. Without timeout it is ended \
             after {} ms; the longest timeout is {} ms. A server, or what takes longer, runs in the background.",
            limits.timeout.as_millis(),
            limits.max_timeout.as_millis()
        );
        ToolSpec::new("bash", description, schema::of_arguments::<BashArgs>())
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let args: BashArgs = req.parse()?;
        let limits = &self.shell.limits;
        let command = Command::new(&self.shell.program).arg("-c").arg(args.command);
        if args.run_in_background {
            let id = self.tasks.start(&self.shell, command, &req.cx).await?;
            let text = format!("started in the background as {id}: bash_output reads what it writes");
            return Ok(ToolOutput::value(json!({"bash_id": id})).shown_as(vec![Part::text(text)]));
        }
        let longest = args.timeout.map_or(limits.timeout, Duration::from_millis).min(limits.max_timeout);
        self.run(command, longest, &req).await
    }

    async fn close(&self) -> Result<()> {
        self.tasks.end_all();
        Ok(())
    }
}
