//! Who the program is to a cloud, as the machine that it runs on tells: access tokens in place of keys.

#[cfg(feature = "entra")]
mod entra;
#[cfg(feature = "gcp")]
mod google;

#[cfg(feature = "entra")]
pub use self::entra::EntraIdentity;
#[cfg(feature = "gcp")]
pub use self::google::GoogleIdentity;
