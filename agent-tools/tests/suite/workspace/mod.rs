//! The workspace tools.

#[cfg(unix)]
mod confinement;
#[cfg(feature = "container")]
use crate::support::containers;
#[cfg(feature = "pdf")]
use crate::support::document;
#[cfg(all(feature = "sandbox", target_os = "linux"))]
mod everywhere;
mod notebooks;
#[cfg(unix)]
mod patching;
#[cfg(feature = "pdf")]
mod pdfs;
mod reading;
mod searching;
use crate::support;
#[cfg(all(feature = "e2b", target_os = "linux"))]
use crate::support::e2b as service;
#[cfg(unix)]
mod writing;

use std::{fs, path::PathBuf, sync::Arc};

use agent_core::{Effect, ErrorKind, Resources, Tool, engine::RunDriver};
use agent_tools::{ArgumentSchema, Workspace};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{call_in, run};

/// Workspace `root` beside a file `secret` outside it.
struct Fixture {
    dir: TempDir,
    workspace: Workspace,
    run: RunDriver,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("root")).expect("creates");
    fs::write(dir.path().join("secret"), "SECRET\n").expect("writes");
    let workspace = Workspace::open(dir.path().join("root")).expect("opens");
    Fixture { dir, workspace, run: run(Resources::default()) }
}

impl Fixture {
    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    fn with(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("creates");
        fs::write(path, content).expect("writes");
        self
    }

    fn limited(mut self, limit: impl FnOnce(Workspace) -> Workspace) -> Self {
        self.workspace = limit(self.workspace);
        self
    }

    fn tool(&self, name: &str) -> Arc<dyn Tool> {
        self.workspace.tools().named(&[name]).expect("exists").into_iter().next().expect("one")
    }

    /// Returns the output for the model, a result or an error. All calls are from one agent.
    async fn call(&self, tool: &str, args: Value) -> String {
        match call_in(self.run.cx(), &self.tool(tool), args).await {
            Ok(output) => output.to_text(),
            Err(error) => format!("ERROR {}", error.message()),
        }
    }

    /// Ends the step: the model has seen the results so far.
    fn next_step(&self) {
        self.run.next_step();
    }

    fn content(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).expect("reads")
    }
}

#[test]
fn the_tools_have_their_names_parameters_and_effects() {
    let fixture = fixture();
    let tools = fixture.workspace.tools();
    let offered: Vec<_> = tools
        .into_tools()
        .expect("no duplicates")
        .iter()
        .map(|tool| {
            let spec = tool.spec();
            assert!(ArgumentSchema::compile(&spec).is_ok(), "{}", spec.name);
            let params: Vec<_> =
                spec.parameters["properties"].as_object().expect("an object").keys().cloned().collect();
            (spec.name, params.join(" "), spec.parameters["required"].to_string(), tool.options().effect)
        })
        .collect();
    let expected = [
        (
            "read_file",
            if cfg!(feature = "pdf") {
                "end_line pages path start_byte start_line"
            } else {
                "end_line path start_byte start_line"
            },
            r#"["path"]"#,
            Effect::Pure,
        ),
        ("read_many_files", "paths", r#"["paths"]"#, Effect::Pure),
        ("list_files", "depth path", "null", Effect::Pure),
        ("glob", "max_results path pattern", r#"["pattern"]"#, Effect::Pure),
        ("grep", "context glob max_results path pattern", r#"["pattern"]"#, Effect::Pure),
        ("write_file", "content path", r#"["path","content"]"#, Effect::Idempotent),
        ("edit_file", "new_text old_text path replace_all", r#"["path","old_text","new_text"]"#, Effect::Reconcilable),
        ("multi_edit", "edits path", r#"["path","edits"]"#, Effect::Reconcilable),
        ("apply_patch", "input", r#"["input"]"#, Effect::Reconcilable),
        ("edit_notebook", "cell cell_type mode path source", r#"["path"]"#, Effect::AtMostOnce),
    ];
    assert_eq!(offered.len(), expected.len());
    for ((name, params, required, effect), expected) in offered.iter().zip(expected) {
        assert_eq!((&**name, &**params, &**required, *effect), expected);
    }
    let read_only = fixture.workspace.clone().read_only().tools();
    assert_eq!(read_only.names(), ["read_file", "read_many_files", "list_files", "glob", "grep"]);
}

#[test]
fn what_is_not_a_directory_is_not_a_workspace() {
    let fixture = fixture();
    for path in ["nope", "secret"] {
        let error = Workspace::open(fixture.dir.path().join(path)).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Config);
    }
}
