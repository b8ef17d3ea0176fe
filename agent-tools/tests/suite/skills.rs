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

#[tokio::test]
async fn optional_fields_are_read_and_allowed_tools_approve_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let fields = "name: releases\ndescription: Writes notes.\nlicense: Apache-2.0\ncompatibility: Requires git\n\
        metadata:\n  author: Ada\n  version: 1.5\nallowed-tools: Bash(git add:*) Bash(jq:*)  Read\n";
    write(dir.path(), "releases/SKILL.md", &format!("---\n{fields}---\nBe short."));
    let skill = Skill::open(dir.path().join("releases")).expect("opens");
    assert_eq!((skill.license(), skill.compatibility()), (Some("Apache-2.0"), Some("Requires git")));
    assert_eq!((&*skill.metadata()["author"], &*skill.metadata()["version"]), ("Ada", "1.5"));
    assert_eq!(skill.allowed_tools(), ["Bash(git add:*)", "Bash(jq:*)", "Read"]);
    assert_eq!(skill.violations(), Vec::<String>::new());
    let loaded = said(&tools(dir.path())[0], json!({"name": "releases"})).await.expect("loads");
    assert!(loaded.contains("Be short.\n\nThe skill requires: Requires git"), "{loaded}");
    assert!(!loaded.contains("Bash(git"), "{loaded}");
}

#[test]
fn optional_fields_of_another_type_do_not_refuse_a_skill() {
    let dir = tempfile::tempdir().expect("a directory");
    let fields =
        "description: Works.\nlicense: [MIT]\ncompatibility: {a: b}\nmetadata: none\nallowed-tools: [Read, Write]\n";
    write(dir.path(), "odd/SKILL.md", &format!("---\n{fields}---\nGo."));
    let skill = Skill::open(dir.path().join("odd")).expect("opens");
    assert_eq!((skill.license(), skill.compatibility(), skill.metadata().len()), (None, None, 0));
    assert_eq!(skill.allowed_tools(), ["Read", "Write"]);
}

#[test]
fn violations_of_the_specification_are_named_and_such_a_skill_works() {
    let long = "x".repeat(1100);
    for (folder, fields, wanted) in [
        ("pdf", "name: pdf\ndescription: Fills.\n".to_owned(), &[][..]),
        ("pdf", "name: PDF\ndescription: Fills.\n".to_owned(), &["lower-case", "directory"][..]),
        ("a--b", "name: a--b\ndescription: Fills.\n".to_owned(), &["two in a row"][..]),
        ("c", format!("name: c\ndescription: {long}\n"), &["'description' has 1100"][..]),
        ("d", format!("name: d\ndescription: Fills.\ncompatibility: {long}\n"), &["'compatibility' has 1100"][..]),
        ("e", "name: e\ndescription: Fills.\nversion: 2\n".to_owned(), &["unknown field 'version'"][..]),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), &format!("{folder}/SKILL.md"), &format!("---\n{fields}---\nGo."));
        let found = Skill::open(dir.path().join(folder)).expect("opens").violations();
        assert_eq!(found.len(), wanted.len(), "{found:?}");
        assert!(found.iter().zip(wanted).all(|(found, wanted)| found.contains(wanted)), "{found:?}");
    }
}

/// For `checks/skills_ref.sh`: writes skills, and whether they violate the specification.
#[test]
#[ignore = "compared with the reference validator"]
fn write_skills_for_the_reference_validator() {
    let root = std::path::PathBuf::from(std::env::var("SKILLS").expect("a directory"));
    let long = "x".repeat(70);
    let names = ["pdf", "pdf-forms", "-pdf", "pdf-", "a--b", "PDF", "a_b", "a.b", "7z", "übung", &long];
    let mut verdicts = String::new();
    for (at, name) in names.into_iter().enumerate() {
        for (kind, more) in [("plain", ""), ("license", "license: MIT\n"), ("extra", "version: 2\n")] {
            let folder = format!("{kind}-{at}/{name}");
            write(
                &root,
                &format!("{folder}/SKILL.md"),
                &format!("---\nname: {name}\ndescription: Fills.\n{more}---\nGo."),
            );
            let skill = Skill::open(root.join(&folder)).expect("opens");
            verdicts += &format!("{} {folder}\n", if skill.violations().is_empty() { "valid" } else { "invalid" });
        }
    }
    fs::write(root.join("verdicts"), verdicts).expect("writes");
}
