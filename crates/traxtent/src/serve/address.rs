//! The address of the NBD server.

use std::net::IpAddr;
use std::path::PathBuf;

/// The address for NBD clients.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    Socket(PathBuf),
    Port(IpAddr, u16),
}

impl Address {
    /// Returns the URI of an export. An empty name means the default export.
    pub(super) fn uri(&self, export: &str) -> String {
        let export = escaped(export);
        match self {
            Address::Socket(path) => format!(
                "nbd+unix:///{export}?socket={}",
                escaped(&path.display().to_string())
            ),
            Address::Port(IpAddr::V6(ip), port) => format!("nbd://[{ip}]:{port}/{export}"),
            Address::Port(ip, port) => format!("nbd://{ip}:{port}/{export}"),
        }
    }
}

/// Percent-encodes all characters except ASCII letters and digits and `/._-~`.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte);
    let escape = |byte: u8| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(escape).collect()
}
