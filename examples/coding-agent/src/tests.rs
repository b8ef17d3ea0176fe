use agent::{
    testing::{ScriptedModel, Turn},
    tools::sandbox::Isolation,
};
use serde_json::json;

use super::*;

/// The sample in a sandbox. The scripts are trusted: where the machine cannot isolate, they still run.
fn sample() -> (Repository, LocalSandbox, TestCommand) {
    let copy = Repository::sample().expect("git");
    let builder = LocalSandbox::builder(copy.path());
    let isolated = builder.clone().build();
    let sandbox = isolated.unwrap_or_else(|_| builder.isolation(Isolation::None).build().expect("a sandbox"));
    let test = TestCommand::new(sandbox.clone(), repository::TEST);
    (copy, sandbox, test)
}

#[tokio::test]
async fn the_script_repairs_the_sample_and_the_patch_has_one_changed_line() {
    let (_copy, sandbox, test) = sample();
    assert!(!test.run().await.expect("runs").is_passed);
    let model = script::repairing();
    let coder = coder::build(model.clone(), &sandbox, &test).expect("builds");

    coder.run("The tests fail.").await.expect("runs").text().expect("is done");

    assert!(test.run().await.expect("runs").is_passed);
    let patch = repository::patch(&sandbox).await.expect("a patch");
    let changed: Vec<_> = patch.lines().filter(|line| line.starts_with(['+', '-'])).collect();
    let expected =
        ["--- a/shipping.py", "+++ b/shipping.py", "-    if amount > FREE_FROM:", "+    if amount >= FREE_FROM:"];
    assert_eq!(changed, expected, "{patch}");
    model.assert_finished();
}

#[tokio::test]
async fn a_model_that_claims_to_be_done_receives_the_failing_test_and_continues() {
    let (_copy, sandbox, test) = sample();
    let read = Turn::call("c2", "read_file", json!({"path": "shipping.py"}));
    let model = ScriptedModel::new([Turn::text("All done."), read, script::edit(), Turn::text("Now it is.")]);
    let coder = coder::build(model.clone(), &sandbox, &test).expect("builds");

    let answer = coder.run("The tests fail.").await.expect("runs").text().expect("is done");

    assert_eq!(answer, "Now it is.");
    let told = model.requests()[1].texts().pop().expect("a message");
    assert!(
        told.contains("The tests still fail") && told.contains("test_an_order_of_exactly_the_limit_is_free"),
        "{told}"
    );
}

#[tokio::test]
async fn a_missing_test_program_is_an_error_that_names_the_options() {
    let (_copy, sandbox, _) = sample();
    let test = TestCommand::new(sandbox, "no-such-program --all");
    let error = test.run().await.expect_err("it is missing");
    assert!(error.message().contains("--readable") && error.message().contains("no-such-program"), "{error}");
}

#[tokio::test]
async fn a_copy_has_the_newest_commit_and_the_original_stays_unchanged() {
    let original = Repository::sample().expect("git");
    let copy = Repository::copy_of(original.path()).expect("a copy");
    std::fs::write(copy.path().join("shipping.py"), "").expect("writes");
    let kept = std::fs::read_to_string(original.path().join("shipping.py")).expect("reads");
    assert!(kept.contains("FREE_FROM"));
}

#[test]
fn a_directory_without_a_repository_is_refused_with_the_reason_of_git() {
    let empty = tempfile::tempdir().expect("a directory");
    let error = Repository::copy_of(&empty.path().join("nothing")).expect_err("no repository");
    assert!(error.message().contains("does not exist"), "{error}");
}
