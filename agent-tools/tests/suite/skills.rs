//! Skills: loaded by name, read within their directories.

use std::{fs, path::Path, sync::Arc};

use agent_core::{ErrorKind, Tool};
use agent_tools::{Skill, Skills};
use serde_json::json;

use crate::support::call;

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().expect("has one")).expect("makes a directory");
    fs::write(path, text).expect("writes");
}

/// Creates two skills, one with files, and a folder that is not a skill.
fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path();
    write(
        root,
        "forms/SKILL.md",
        "---\nname: pdf-forms\ndescription: Fills forms.\nlicense: MIT\n---\n# Forms\nUse fill.py.\n",
    );
    write(root, "forms/scripts/fill.py", "print('filled')\n");
    write(root, "forms/REFERENCE.md", "All fields.");
    write(root, "poems/SKILL.md", "---\ndescription: Writes poems.\n---\nRhyme.");
    write(root, "notes/README.md", "no skill");
    write(root, "secret.txt", "secret");
    dir
}

fn tools(dir: &Path) -> Vec<Arc<dyn Tool>> {
    Skills::open(dir).expect("opens").tools().into_tools().expect("names differ")
}

async fn said(tool: &Arc<dyn Tool>, args: serde_json::Value) -> Result<String, String> {
    match call(&**tool, args).await {
        Ok(output) => Ok(output.to_text()),
        Err(e) => Err(e.message().to_owned()),
    }
}

#[tokio::test]
async fn the_catalog_is_in_the_description_and_a_skill_is_loaded_by_its_name() {
    let dir = directory();
    let tools = tools(dir.path());
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name).collect();
    assert_eq!(names, ["load_skill", "read_skill_file"]);
    let about = tools[0].spec().description;
    assert!(about.ends_with("The skills are:\n- pdf-forms: Fills forms.\n- poems: Writes poems."), "{about}");
    let loaded = said(&tools[0], json!({"name": "pdf-forms"})).await.expect("loads");
    assert_eq!(
        loaded,
        "<skill name=\"pdf-forms\">\n# Forms\nUse fill.py.\n\nFiles of the skill, for read_skill_file: REFERENCE.md, \
         scripts/fill.py\n</skill>"
    );
    let read = said(&tools[1], json!({"name": "pdf-forms", "path": "scripts/fill.py"})).await;
    assert_eq!(read.as_deref(), Ok("print('filled')\n"));
}

#[tokio::test]
async fn an_unknown_skill_is_answered_with_those_there_are() {
    let dir = directory();
    let tools = tools(dir.path());
    let expected = Err("there is no skill 'pdf'; there are: pdf-forms, poems".to_owned());
    assert_eq!(said(&tools[0], json!({"name": "pdf"})).await, expected);
    assert_eq!(said(&tools[1], json!({"name": "pdf", "path": "x"})).await, expected);
}

#[tokio::test]
async fn no_path_leads_out_of_a_skill_and_the_files_there_are_are_named() {
    let dir = directory();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret.txt", dir.path().join("forms/link.txt")).expect("links");
    let tools = tools(dir.path());
    let files = "Files of the skill 'pdf-forms': REFERENCE.md, scripts/fill.py";
    let absolute = dir.path().join("secret.txt").display().to_string();
    for path in ["../secret.txt", "scripts/../../secret.txt", "../poems/SKILL.md", &absolute, "link.txt"] {
        let told = said(&tools[1], json!({"name": "pdf-forms", "path": path})).await.expect_err(path);
        assert!(told.contains("is outside the skill") && told.contains(files), "{path}: {told}");
    }
    let told = said(&tools[1], json!({"name": "pdf-forms", "path": "REFERNCE.md"})).await.expect_err("no such file");
    assert!(told.contains("does not exist; did you mean REFERENCE.md?") && told.ends_with(files), "{told}");
}

#[tokio::test]
async fn what_is_no_text_is_not_read() {
    let dir = directory();
    fs::write(dir.path().join("forms/data.bin"), [b'a', 0, b'b']).expect("writes");
    fs::write(dir.path().join("forms/latin.txt"), [0xe9]).expect("writes");
    for path in ["data.bin", "latin.txt"] {
        let told = said(&tools(dir.path())[1], json!({"name": "pdf-forms", "path": path})).await.expect_err(path);
        assert!(told.starts_with(&format!("'{path}' is not text")), "{told}");
    }
}

#[tokio::test]
async fn instructions_are_read_when_they_are_asked_for() {
    let dir = directory();
    let tools = tools(dir.path());
    write(dir.path(), "poems/SKILL.md", "---\ndescription: Writes poems.\n---\nDo not rhyme.");
    let loaded = said(&tools[0], json!({"name": "poems"})).await.expect("loads");
    assert_eq!(loaded, "<skill name=\"poems\">\nDo not rhyme.\n</skill>");
    fs::remove_file(dir.path().join("poems/SKILL.md")).expect("removes");
    assert!(said(&tools[0], json!({"name": "poems"})).await.expect_err("is gone").contains("does not exist"));
}

#[test]
fn a_skill_that_cannot_be_used_is_refused_with_what_to_change() {
    let refused = |text: &str| {
        let dir = directory();
        write(dir.path(), "bad/SKILL.md", text);
        let error = Skills::open(dir.path()).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Config);
        error.message().to_owned()
    };
    assert!(refused("---\nname: bad\n---\n").contains("has no description"));
    assert!(refused("---\nname: poems\ndescription: x\n---\n").contains("two skills are named 'poems'"));
    assert!(refused("# Bad").contains("bad': SKILL.md: it does not begin with front matter"));
    assert!(refused("---\na: [\n---\n").contains("no YAML"));
    assert!(Skills::open("no/such/directory").is_err());
    assert!(Skills::new().skill(Skill::new(" ", "x", "y")).is_err());
}

#[test]
fn no_skills_are_no_tools() {
    let dir = tempfile::tempdir().expect("a directory");
    assert!(Skills::open(dir.path()).expect("opens").tools().names().is_empty());
}
