//! `load_skill` and `read_skill_file`.

use agent_core::{Effect, Tool, ToolRequest};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Skills;
use crate::{ToolExt, blocking::blocking, from_fn};

#[derive(Deserialize, JsonSchema)]
struct LoadSkill {
    /// The skill's name.
    name: String,
}

pub(super) fn load(skills: &Skills) -> impl Tool {
    let mut about = String::from(
        "Loads the instructions of a skill. Load one before you begin with something that it is for. The skills are:",
    );
    for skill in skills.iter() {
        about.push_str(&format!("\n- {}: {}", skill.name(), skill.description()));
    }
    let skills = skills.clone();
    from_fn("load_skill", about, move |args: LoadSkill, _: ToolRequest| {
        let skills = skills.clone();
        blocking(move || {
            let skill = skills.find(&args.name)?;
            let (name, mut loaded) = (skill.name(), skill.instructions()?);
            if let Some(needs) = skill.compatibility() {
                loaded.push_str(&format!("\n\nThe skill requires: {needs}"));
            }
            let files = skill.files();
            if !files.is_empty() {
                loaded.push_str(&format!("\n\nFiles of the skill, for read_skill_file: {}", files.join(", ")));
            }
            Ok(format!("<skill name=\"{name}\">\n{loaded}\n</skill>"))
        })
    })
    .with_options(|options| options.effect(Effect::Pure))
}

#[derive(Deserialize, JsonSchema)]
struct ReadSkillFile {
    /// The skill's name.
    name: String,
    /// The file, relative to the skill's directory.
    path: String,
}

pub(super) fn read(skills: &Skills) -> impl Tool {
    let skills = skills.clone();
    let about = "Reads a file of a skill, as its instructions name it.";
    from_fn("read_skill_file", about, move |args: ReadSkillFile, _: ToolRequest| {
        let skills = skills.clone();
        blocking(move || skills.find(&args.name)?.read(&args.path))
    })
    .with_options(|options| options.effect(Effect::Pure))
}
