//! The embedded offline model, asked about this project's own documentation with the tools of a workspace.

use std::{fs, path::Path};

use agent::{Agent, RunEnd, llm::offline::OfflineModel, tools::Workspace};
use tempfile::TempDir;

/// Material of the questions: the documentation, and code that contains their words too.
const ASKED_ABOUT: [&str; 5] = ["CHANGELOG.md", "CONTRIBUTING.md", "README.md", "agent-core/src", "docs"];

/// Questions as newcomers ask them, each with the files that answer it, without `docs/guide/` and `.md`.
const QUESTIONS: [(&str, &[&str]); 40] = [
    ("How do I write my own tool?", &["tools", "README"]),
    ("How do I connect Ollama?", &["providers", "README", "models"]),
    ("What happens when a tool call is in doubt?", &["tools"]),
    ("Which parameters does the model not see?", &["tools"]),
    ("How does a tool fail so that the model can react?", &["tools"]),
    ("How do I write a middleware?", &["middleware", "hooks"]),
    ("In which order do the hooks of middlewares run?", &["middleware", "hooks"]),
    ("Can I use a tower layer around model calls?", &["middleware", "reliability"]),
    ("How do I test a middleware?", &["middleware", "testing"]),
    ("How do I implement a model of my own?", &["custom-models", "models", "testing"]),
    ("How do I set the temperature?", &["models", "prompts"]),
    ("What can I do with a model that takes no tools?", &["models"]),
    ("How do I use a key that expires?", &["models"]),
    ("How do I keep long conversations short enough?", &["compaction"]),
    ("What happens when the provider refuses a request because the context is too long?", &["compaction"]),
    ("How do I shorten long tool outputs?", &["compaction"]),
    ("How do I define an agent in a configuration file?", &["definitions"]),
    ("How do I let an agent call another agent?", &["delegation"]),
    ("Can a sub-agent run in the background?", &["delegation"]),
    ("How do I follow a run's events while it goes on?", &["events"]),
    ("How do I send an event of my own?", &["events"]),
    ("What do the planner, the worker, the verifier and the generator do?", &["flow"]),
    ("How do I ask a person for approval before a tool runs?", &["interrupts", "permissions", "README"]),
    ("How do I set a breakpoint?", &["interrupts"]),
    ("How do I pause or cancel a run?", &["interrupts", "runs"]),
    ("How do I give a run a budget?", &["limits"]),
    ("How do I set a deadline for a run?", &["limits"]),
    ("How does an application shut down in good order?", &["limits"]),
    ("How do I allow some command lines and deny others?", &["permissions"]),
    ("How do I write a system prompt as a template with inputs?", &["prompts"]),
    ("How do I fall back to another model when one fails?", &["reliability", "models"]),
    ("In which order should layers for retries and timeouts stand?", &["reliability"]),
    ("How can a run end?", &["runs"]),
    ("How do I keep state between the steps of a run?", &["runs", "sessions"]),
    ("How do I remove personal data from what the model sees?", &["safety"]),
    ("How do I protect my agent from prompt injection?", &["safety"]),
    ("How do I go on after a crash?", &["sessions"]),
    ("How do I get a structured answer of my own type?", &["structured"]),
    ("How do I send traces to OpenTelemetry?", &["telemetry"]),
    ("How do I record a tape of an exchange with a provider for my tests?", &["testing"]),
];

/// A copy, without this file and its questions.
fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::create_dir_all(to.parent().expect("a folder")).expect("creates");
        fs::copy(from, to).expect("copies");
        return;
    }
    for entry in fs::read_dir(from).expect("reads") {
        let name = entry.expect("reads").file_name();
        copy(&from.join(&name), &to.join(&name));
    }
}

fn repository() -> TempDir {
    let (root, dir) = (Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), tempfile::tempdir().expect("a directory"));
    ASKED_ABOUT.iter().for_each(|path| copy(&root.join(path), &dir.path().join(path)));
    dir
}

/// The files that the answer quotes, in order, each once.
async fn quoted(workspace: &Workspace, question: &str) -> Vec<String> {
    let agent = Agent::builder("guide", OfflineModel).tools(workspace.tools()).build().expect("builds");
    let answer = match agent.run(question).await.expect("runs") {
        RunEnd::Finished(end) => end.answer,
        other => panic!("{other:?}"),
    };
    let place = |line: &str| {
        let (path, _) = line.split_once(". `")?.1.split_once(':')?;
        let path = path.trim_start_matches("docs/guide/");
        Some(path.trim_end_matches(".md").to_owned())
    };
    let mut files: Vec<String> = Vec::new();
    for file in answer.lines().filter_map(place) {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

#[tokio::test]
async fn most_questions_about_the_documentation_are_answered_from_the_right_guide() {
    let repository = repository();
    let workspace = Workspace::open(repository.path()).expect("opens").read_only();
    let (mut first, mut among_three, mut missed) = (0, 0, String::new());
    for (question, right) in QUESTIONS {
        let files = quoted(&workspace, question).await;
        let place = files.iter().position(|file| right.contains(&file.as_str()));
        first += usize::from(place == Some(0));
        among_three += usize::from(place.is_some_and(|place| place < 3));
        if place != Some(0) {
            missed.push_str(&format!("{question} {right:?}: {files:?}\n"));
        }
    }
    assert!(first * 10 >= QUESTIONS.len() * 7, "{first} of {} have the right file first:\n{missed}", QUESTIONS.len());
    assert!(among_three * 10 >= QUESTIONS.len() * 9, "{among_three} have it among the first three:\n{missed}");
}
