//! What the keys of well-known services look like.

/// How the keys of well-known services begin, and how many characters follow at least. Signed tokens (`eyJ`) are among them.
///
/// Whatever takes secrets out of texts goes by this list. A text that begins so is not always a key: the search should begin
/// where a word does, and may want digits or capitals in what follows.
pub const API_KEY_PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_", 16),
    ("rk_live_", 16),
    ("pk_live_", 16),
    ("whsec_", 16),
    ("gsk_", 20),
    ("xai-", 20),
    ("pplx-", 20),
    ("r8_", 20),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("hf_", 20),
    ("npm_", 20),
    ("pypi-", 20),
    ("SG.", 20),
    ("eyJ", 20),
];
