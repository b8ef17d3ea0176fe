//! `list_files`, `glob` and `grep`.

use std::time::Duration;

use agent_core::{ErrorKind, Resources};
use serde_json::{Value, json};

use super::{
    Fixture, fixture,
    support::{call_in, run},
};

fn project() -> Fixture {
    fixture()
        .with(".gitignore", "target/\n*.log\n!keep.log\n/only_here\n")
        .with(".hidden/file", "needle")
        .with("Cargo.toml", "[package]\nname = \"needle\"\n")
        .with("src/main.rs", "fn main() {\n    let needle = 1;\n}\n")
        .with("src/deep/mod.rs", "// Needle\n// needle\n")
        .with("src/deep/.gitignore", "generated.rs\n")
        .with("src/deep/generated.rs", "needle")
        .with("src/only_here", "x")
        .with("only_here", "needle")
        .with("target/debug/out.rs", "needle")
        .with("debug.log", "needle")
        .with("keep.log", "x")
        .with("data.bin", b"\0needle")
}

#[tokio::test]
async fn listing_leaves_out_what_is_ignored_or_hidden_and_goes_down_as_asked() {
    let project = project();
    assert_eq!(
        project.call("list_files", json!({})).await,
        "Cargo.toml (26 bytes)\ndata.bin (7 bytes)\nkeep.log (1 byte)\nsrc/"
    );
    assert_eq!(
        project.call("list_files", json!({"path": "src", "depth": 2})).await,
        "src/deep/\nsrc/deep/mod.rs (20 bytes)\nsrc/main.rs (34 bytes)\nsrc/only_here (1 byte)"
    );
    let target = project.call("list_files", json!({"path": "target"})).await;
    assert_eq!(target, "target/debug/", "what is asked for by name is listed");
    let hidden = project.call("list_files", json!({"path": "src/main.rs"})).await;
    assert!(hidden.starts_with("ERROR 'src/main.rs' cannot be used"), "{hidden}");
}

#[tokio::test]
async fn globs_find_by_name_or_by_path() {
    let project = project();
    let find = async |glob: &str| project.call("glob", json!({"pattern": glob})).await;
    assert_eq!(find("*.rs").await, "src/deep/mod.rs\nsrc/main.rs");
    assert_eq!(find("./src/*.rs").await, "src/main.rs");
    assert_eq!(find("src/deep/").await, "src/deep/mod.rs");
    assert_eq!(find("**/*.{toml,log}").await, "Cargo.toml\nkeep.log");
    assert_eq!(find("*.zig").await, "no file matches '*.zig'");
    assert!(find("a[").await.starts_with("ERROR 'a[' is not a glob"));
    let one = project.call("glob", json!({"pattern": "*.rs", "max_results": 1})).await;
    assert_eq!(one, "src/deep/mod.rs\n[cut at 1: narrow the pattern, or set max_results]");
    let both = project.call("glob", json!({"pattern": "*.rs", "max_results": 2})).await;
    assert_eq!(both, "src/deep/mod.rs\nsrc/main.rs", "exactly as many as there are is not cut");
}

#[tokio::test]
async fn searching_shows_path_line_and_text() {
    let project = project();
    let search = async |args: Value| project.call("grep", args).await;
    assert_eq!(
        search(json!({"pattern": "needle"})).await,
        "Cargo.toml:2: name = \"needle\"\nsrc/deep/mod.rs:2: // needle\nsrc/main.rs:2:     let needle = 1;"
    );
    assert_eq!(
        search(json!({"pattern": "(?i)^// needle$"})).await,
        "src/deep/mod.rs:1: // Needle\nsrc/deep/mod.rs:2: // needle"
    );
    assert_eq!(
        search(json!({"pattern": "let", "context": 1})).await,
        "src/main.rs-1- fn main() {\nsrc/main.rs:2:     let needle = 1;\nsrc/main.rs-3- }"
    );
    assert_eq!(search(json!({"pattern": "needle", "glob": "*.toml"})).await, "Cargo.toml:2: name = \"needle\"");
    assert_eq!(
        search(json!({"pattern": "needle", "max_results": 1})).await,
        "Cargo.toml:2: name = \"needle\"\n[cut: there may be more; narrow the pattern or the glob]"
    );
    assert_eq!(search(json!({"pattern": "nothing like it"})).await, "no line matches 'nothing like it'");
    assert!(search(json!({"pattern": "foo("})).await.starts_with("ERROR 'foo(' is not a regular expression"));
}

#[tokio::test]
async fn the_end_of_a_line_is_found_whatever_ends_it() {
    let fixture = fixture().with("unix", "one\ntwo\n").with("windows", "one\r\ntwo\r\n").with("last", "one");
    let found = fixture.call("grep", json!({"pattern": "^one$"})).await;
    assert_eq!(found, "last:1: one\nunix:1: one\nwindows:1: one");
}

#[tokio::test]
async fn a_pattern_that_would_be_a_burden_is_refused_or_harmless() {
    let fixture = fixture().with("a", "a".repeat(30_000));
    let evil = fixture.call("grep", json!({"pattern": "(a*)*(a*)*(a*)*b"})).await;
    assert_eq!(evil, "no line matches '(a*)*(a*)*(a*)*b'");
    let huge = fixture.call("grep", json!({"pattern": "(((x{200}){200}){200}){200}"})).await;
    assert!(huge.starts_with("ERROR"), "{huge}");
}

#[tokio::test]
async fn a_search_that_is_late_shows_what_it_has_and_says_so() {
    let project = project().limited(|w| w.search_timeout(Duration::ZERO));
    let late = "[the time was up: ";
    assert!(project.call("grep", json!({"pattern": "needle"})).await.contains(late));
    assert!(project.call("glob", json!({"pattern": "*"})).await.contains(late));
    assert!(project.call("list_files", json!({})).await.contains(late));
}

#[tokio::test]
async fn a_cancelled_run_ends_its_search() {
    let project = project().limited(|w| w.search_timeout(Duration::MAX));
    let run = run(Resources::default());
    run.cx().cancellation().cancel();
    let error = call_in(run.cx(), &project.tool("grep"), json!({"pattern": "x"})).await.expect_err("cancelled");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

#[tokio::test]
async fn searching_and_finding_are_kept_to_a_folder_or_a_file_that_is_named() {
    let project =
        fixture().with("src/a.rs", "needle\n").with("src/deep/b.rs", "needle\n").with("docs/c.rs", "needle\n");
    let found = async |path: &str, pattern: &str| project.call("glob", json!({"path": path, "pattern": pattern})).await;
    assert_eq!(found("src", "*.rs").await, "src/a.rs\nsrc/deep/b.rs");
    assert_eq!(found("src/", "deep/*").await, "src/deep/b.rs", "a pattern is below the folder that is named");
    assert_eq!(found("gone", "*").await, "ERROR 'gone' does not exist");
    let hits = async |path: &str, glob: Value| {
        project.call("grep", json!({"path": path, "pattern": "needle", "glob": glob})).await
    };
    assert_eq!(hits("src", json!(null)).await, "src/a.rs:1: needle\nsrc/deep/b.rs:1: needle");
    assert_eq!(hits("src", json!("deep/*")).await, "src/deep/b.rs:1: needle");
    assert_eq!(hits("docs/c.rs", json!(null)).await, "docs/c.rs:1: needle");
    assert!(hits("../secret", json!(null)).await.starts_with("ERROR"));
}
