//! Exception names of AWS services.

use agent_core::ErrorKind;

/// Meaning of each exception, in lower case and without the word `exception`.
const NAMES: [(&str, ErrorKind); 21] = [
    ("throttling", ErrorKind::RateLimited),
    ("toomanyrequests", ErrorKind::RateLimited),
    ("servicequotaexceeded", ErrorKind::Quota),
    ("serviceunavailable", ErrorKind::Overloaded),
    ("modelnotready", ErrorKind::Overloaded),
    ("slowdown", ErrorKind::Overloaded),
    ("modeltimeout", ErrorKind::Timeout),
    ("modelstreamerror", ErrorKind::Provider),
    ("modelerror", ErrorKind::Provider),
    ("internalserver", ErrorKind::Provider),
    ("internalfailure", ErrorKind::Provider),
    ("accessdenied", ErrorKind::Authentication),
    ("unrecognizedclient", ErrorKind::Authentication),
    ("expiredtoken", ErrorKind::Authentication),
    ("invalidclienttokenid", ErrorKind::Authentication),
    ("invalidsignature", ErrorKind::Authentication),
    ("incompletesignature", ErrorKind::Authentication),
    ("missingauthenticationtoken", ErrorKind::Authentication),
    ("signaturedoesnotmatch", ErrorKind::Authentication),
    ("validation", ErrorKind::InvalidRequest),
    ("resourcenotfound", ErrorKind::InvalidRequest),
];

/// Extracts the bare name from `com.amazon.coral.service#ThrottlingException` or
/// `ThrottlingException:http://..`.
pub(super) fn name(said: &str) -> &str {
    let said = said.rsplit_once('#').map_or(said, |(_, name)| name);
    said.split_once(':').map_or(said, |(name, _)| name)
}

/// Maps an exception name to its kind; `None` if the name is unknown.
pub(super) fn kind(name: &str) -> Option<ErrorKind> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix("exception").unwrap_or(&name);
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}
