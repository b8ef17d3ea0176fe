//! AWS profile files.

use std::path::PathBuf;

use agent_core::{Error, Result};
use configparser::ini::Ini;

use super::machine::read;

type ReadEnv<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Contents of `~/.aws/credentials` and `~/.aws/config`, or of the files that the environment names
/// instead.
#[derive(Default)]
pub(super) struct Profiles {
    credentials: Ini,
    config: Ini,
}

impl Profiles {
    /// Reads the files; missing files count as empty.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if a file cannot be read; the error does not quote
    /// its content.
    pub(super) fn read(env: ReadEnv<'_>) -> Result<Self> {
        Ok(Self {
            credentials: file(env, "AWS_SHARED_CREDENTIALS_FILE", "credentials")?,
            config: file(env, "AWS_CONFIG_FILE", "config")?,
        })
    }

    /// Returns the name of the selected profile.
    pub(super) fn chosen(&self, said: Option<&str>, env: ReadEnv<'_>) -> String {
        let of_env = ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"].into_iter().filter_map(env);
        let mut of_env = of_env.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        said.map(str::to_owned).or_else(|| of_env.next()).unwrap_or_else(|| "default".to_owned())
    }

    pub(super) fn has(&self, profile: &str) -> bool {
        let is_there = |file: &Ini, section: &str| file.get_map_ref().contains_key(section);
        is_there(&self.credentials, profile) || sections(profile).iter().any(|section| is_there(&self.config, section))
    }

    /// Returns a value of a profile; the credentials file takes precedence.
    pub(super) fn value(&self, profile: &str, name: &str) -> Option<String> {
        let in_config = || sections(profile).iter().find_map(|section| self.config.get(section, name));
        let value = self.credentials.get(profile, name).or_else(in_config)?;
        // A comment may follow after white space.
        let end = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| value.find(mark)).min().unwrap_or(value.len());
        Some(value[..end].trim().to_owned()).filter(|value| !value.is_empty())
    }
}

/// Returns the section names of a profile in the file `config`.
fn sections(profile: &str) -> Vec<String> {
    let plain = (profile == "default").then(|| profile.to_owned());
    [format!("profile {profile}")].into_iter().chain(plain).collect()
}

fn file(env: ReadEnv<'_>, variable: &str, name: &str) -> Result<Ini> {
    let said = env(variable).filter(|path| !path.trim().is_empty()).map(PathBuf::from);
    let home =
        || ["HOME", "USERPROFILE"].into_iter().find_map(env).map(|home| PathBuf::from(home).join(".aws").join(name));
    let mut file = parser();
    let Some(path) = said.or_else(home) else { return Ok(file) };
    let Some(text) = read(&path)? else { return Ok(file) };
    // The parser's error may quote a secret.
    file.read(text).map_err(|_| Error::config(format!("{} is no file of AWS's profiles", path.display())))?;
    Ok(file)
}

/// Returns a parser for the dialect of the AWS tools: names are case-sensitive, and indented lines
/// continue the line before.
fn parser() -> Ini {
    let mut file = Ini::new_cs();
    let mut form = file.defaults();
    form.delimiters = vec!['='];
    form.enable_inline_comments = false;
    form.multiline = true;
    file.load_defaults(form);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profiles(credentials: &str, config: &str) -> Profiles {
        let read = |text: &str| {
            let mut file = parser();
            file.read(text.to_owned()).expect("a file");
            file
        };
        Profiles { credentials: read(credentials), config: read(config) }
    }

    #[test]
    fn a_profile_is_read_from_both_files() {
        let both = profiles(
            "[default]\naws_access_key_id = A\naws_secret_access_key=a/b+c==\n\n[Work]\n# a comment\naws_access_key_id = B ; of work\n",
            "[default]\nregion = us-east-1\ns3 =\n  region = nowhere\n[profile Work]\nregion=eu-west-1\naws_access_key_id = C\n[Work]\noutput = json\n",
        );
        let value = |profile, name| both.value(profile, name);
        assert_eq!(value("default", "aws_secret_access_key").as_deref(), Some("a/b+c=="));
        assert_eq!(value("default", "region").as_deref(), Some("us-east-1"), "what is indented is of the line before");
        assert_eq!(value("Work", "aws_access_key_id").as_deref(), Some("B"), "the file of credentials goes first");
        assert_eq!(value("Work", "region").as_deref(), Some("eu-west-1"));
        assert_eq!(value("Work", "output"), None, "the other file calls profiles by that word");
        assert!(both.has("Work") && !both.has("work") && !both.has("nobody"));
    }

    #[test]
    fn the_profile_is_that_of_the_program_or_of_the_environment() {
        let none = Profiles::default();
        let env = |name: &str| (name == "AWS_PROFILE").then(|| "work".to_owned());
        assert_eq!(none.chosen(Some("mine"), &env), "mine");
        assert_eq!(none.chosen(None, &env), "work");
        assert_eq!(none.chosen(None, &|_| None), "default");
    }
}
