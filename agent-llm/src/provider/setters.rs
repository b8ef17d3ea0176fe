//! Setters shared by the builders of models, embedders and rerankers.

/// Defines the connection setters of a builder with the fields `wanted`, `http` and `auth`.
macro_rules! connection_setters {
    () => {
        /// Sets the base URL, without the path of the API. Default: the provider's.
        ///
        /// The URL of another known provider selects that provider. Any other URL is that of a
        /// custom server, named after its host, unless the provider has no fixed URL (one with
        /// placeholders, or on your machine). A custom server receives no key from the environment.
        pub fn base_url(mut self, url: impl Into<String>) -> Self {
            self.wanted.base_url = Some(url.into());
            self
        }

        /// Sets the key. Default: from the first of the provider's environment variables that is
        /// set.
        pub fn api_key(mut self, key: impl Into<String>) -> Self {
            self.http.api_key = Some(secrecy::SecretString::from(key.into()));
            self
        }

        /// Sets a source of short-lived keys, which is called before every request. It replaces
        /// `api_key`.
        pub fn credentials(mut self, credentials: impl $crate::Credentials) -> Self {
            self.http.credentials = Some(std::sync::Arc::new(credentials));
            self
        }

        /// Signs every request, instead of sending a key from the environment: see
        /// [`Signer`](crate::Signer). Default: as the provider requires; requests to Amazon Bedrock
        /// are signed with AWS credentials if no Bedrock API key is set.
        pub fn signer(mut self, signer: impl $crate::Signer) -> Self {
            self.http.signer = Some(std::sync::Arc::new(signer));
            self
        }

        /// Sets the placement of the key. Default: as in the profile; [`Auth::Bearer`](crate::Auth)
        /// for a custom codec.
        pub fn auth(mut self, auth: $crate::Auth) -> Self {
            self.auth = Some(auth);
            self
        }

        /// Sends this header with every request.
        pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.http.headers.push((name.into(), secrecy::SecretString::from(value.into())));
            self
        }

        /// Sets the transport. Default: one [`HttpTransport`](crate::HttpTransport) that the whole
        /// process shares.
        ///
        /// With a custom transport no key is required: the transport may add one, or replay a
        /// recording.
        pub fn transport(mut self, transport: impl $crate::Transport) -> Self {
            self.http.transport = Some(std::sync::Arc::new(transport));
            self.http.may_bring_key = true;
            self
        }

        /// Sets an HTTP transport, as [`transport`](Self::transport) does, but a key remains
        /// required and is found as usual.
        #[cfg(feature = "http")]
        pub fn network(mut self, transport: $crate::HttpTransport) -> Self {
            self.http.transport = Some(std::sync::Arc::new(transport));
            self.http.may_bring_key = false;
            self
        }

        /// Sets the timeout for the beginning of the answer. An answer that is not streamed begins
        /// when it is complete. Default: same as the idle timeout.
        pub fn first_timeout(mut self, longest: std::time::Duration) -> Self {
            self.http.first_timeout = Some(longest);
            self
        }

        /// Sets the timeout between any two chunks of the answer. Default: 300 s.
        pub fn idle_timeout(mut self, longest: std::time::Duration) -> Self {
            self.http.idle_timeout = longest;
            self
        }

        /// Sets the maximum size of one answer on the wire, streamed or not, in bytes. Default:
        /// 64 MiB.
        pub fn max_answer(mut self, bytes: usize) -> Self {
            self.http.max_answer = bytes;
            self
        }
    };
}

pub(super) use connection_setters;
