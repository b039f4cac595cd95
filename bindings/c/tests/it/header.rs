//! The header.

use std::{env, fs};

use crate::program::crate_path;

/// Is the header up to date with the library's source? `TRAXTENT_RENEW=1` regenerates it.
#[test]
fn header_is_current() {
    let config = cbindgen::Config::from_file(crate_path("cbindgen.toml")).unwrap();
    let mut header = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(crate_path("src/lib.rs"))
        .generate()
        .unwrap()
        .write(&mut header);
    let header = String::from_utf8(header).unwrap();
    let path = crate_path("include/traxtent.h");
    if env::var_os("TRAXTENT_RENEW").is_some() {
        fs::write(&path, &header).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap();
    assert!(kept == header, "out of date; run with TRAXTENT_RENEW=1");
}
